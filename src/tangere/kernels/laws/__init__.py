"""Laws: what is computed anew in each period and remembers, written once over any number type."""
