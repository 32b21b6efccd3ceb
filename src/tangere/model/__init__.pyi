from tangere.model.loading import load as load, names as names, parameter_sets as parameter_sets
from tangere.model.model import (
    DH as DH,
    Drives as Drives,
    Joint as Joint,
    Link as Link,
    Model as Model,
    Payload as Payload,
    Source as Source,
)
