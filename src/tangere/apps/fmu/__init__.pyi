from tangere.apps.fmu.kinds import KINDS as KINDS
from tangere.apps.fmu.package import Written as Written, write_fmu as write_fmu
