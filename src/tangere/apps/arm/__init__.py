"""A live arm: the commands record, calibration and doctor, which only listen; `live`, the client that also moves it."""
