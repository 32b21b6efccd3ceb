from tangere.logs.csv_log import write_csv as write_csv
from tangere.logs.log import Log as Log, Note as Note
from tangere.logs.mcap_log import write_mcap as write_mcap
from tangere.logs.recordings import CsvStream as CsvStream, Recording as Recording, follow as follow, read as read
