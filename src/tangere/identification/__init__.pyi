from tangere.identification.identify_motions import identify as identify
from tangere.identification.model import IdentifiedModel as IdentifiedModel
from tangere.identification.model import read_model as read_model
from tangere.identification.prior import prior_drive as prior_drive
from tangere.identification.recorder import momentum_residual as momentum_residual, moving_rms as moving_rms
from tangere.identification.samples import Motion as Motion
from tangere.identification.touch_logs import DriveGains as DriveGains, drive_gains as drive_gains
