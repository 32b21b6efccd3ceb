"""Learning environments: UR arms with torque actions and a sense of touch, many at once."""
