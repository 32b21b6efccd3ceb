from tangere.observe.detect.detector import Detector as Detector
from tangere.observe.detect.thresholds import PayloadChange as PayloadChange, Wanted as Wanted, wanted as wanted
from tangere.observe.detect.replay import detect as detect
from tangere.kernels.laws.detection import REGIMES as REGIMES
from tangere.observe.detect.signals import GAIN as GAIN, Signals as Signals
from tangere.observe.detect.stops import StopWatch as StopWatch
from tangere.observe.detect.thresholds import Thresholds as Thresholds
from tangere.observe.detect.tuning import RATE as RATE, FreeMotion as FreeMotion, tune as tune
from tangere.types import ALARMS as ALARMS, KINDS as KINDS, Event as Event
