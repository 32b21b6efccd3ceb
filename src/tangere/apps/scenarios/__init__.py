"""The runs that `tangere run` knows: motion, controller, plant, observer and what is told of them."""
