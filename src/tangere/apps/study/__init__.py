"""How well touches are found: many simulated or injected trials."""
