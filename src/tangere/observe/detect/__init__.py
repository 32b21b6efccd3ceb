"""Detection: events from a residual, with thresholds for a promised rate of false alarms.

    robot, drive = model.robot(base), model.drive                  # IdentifiedModel, or prior_drive(base) without one
    residual = momentum_residual(robot, drive, motion, GAIN)       # (N, n), or MomentumObserver in a loop
    thresholds = tune([FreeMotion(time, residual, qd, name, digest), ...], rate=0.1, gain=GAIN, drive=drive)
    thresholds = Thresholds.of_drive(drive, GAIN)                  # without free motion: from what is not known
    thresholds = Thresholds.constant(5.0)                          # or 5 Nm on the residual itself, as it comes
    table = thresholds.to_table(); thresholds = Thresholds.from_table(table)       # [detection] of a model file
    thresholds.rate, .supported, .hours, .logs, .notes             # 1/h promised, 1/h that the data can promise, ...

    detector = Detector(thresholds, robot=robot, isolator=ContactIsolator(robot), stiction=drive.stiction)
    events = detect(detector, time, residual, q, qd, tau, target_qd, delay=drive.delay)       # a whole log; delay only
                                                                   # for momentum_residual, which looks that far ahead
    event = detector.update(state, residual)                       # or sample by sample: None, or an event that was
                                                                   # raised or has become an alarm
    detector.events                                                # all, newest form; open while end_s is None
    detector.wanted = wanted(6, joints=(5, 6), factor=3.0); detector.payload_change = PayloadChange(2.0, 4.0)
    event.alarm, event.kind, event.time_s, event.onset_s, event.record()            # record(): plain data for JSON

Residuals of `Thresholds` and `Detector` must come from an observer of the same gain. None of this is a safety function.
"""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
