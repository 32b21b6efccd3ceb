from tangere.logs.csv_log import write_csv as write_csv
from tangere.logs.log import Log as Log, Note as Note
from tangere.logs.mcap_log import write_mcap as write_mcap
from tangere.logs.recordings import Recording as Recording, read as read
from tangere.logs.stream import CsvStream as CsvStream, follow as follow
