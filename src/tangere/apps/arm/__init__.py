"""A live arm, listened to: the commands record, calibration and doctor. Nothing here can move it."""
