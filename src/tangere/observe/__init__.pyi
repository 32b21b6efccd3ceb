from tangere.observe.acceleration import AccelerationObserver as AccelerationObserver
from tangere.observe.detect.detector import Detector as Detector
from tangere.observe.detect.thresholds import Thresholds as Thresholds
from tangere.observe.isolation import ContactIsolator as ContactIsolator
from tangere.observe.momentum import MomentumObserver as MomentumObserver
