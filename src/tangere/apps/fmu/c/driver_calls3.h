/* The functions of FMI 3.0 that a host calls; the types of its numbers. */
#ifndef TG_DRIVER_CALLS3_H
#define TG_DRIVER_CALLS3_H

#include "fmi3.h"

typedef fmi3Instance In;
typedef const fmi3ValueReference *Refs3;
typedef fmi3Boolean *Flag;
typedef fmi3Float64 Real;

#define VALUES(X, Type, type)                                                                                          \
    X(fmi3Get##Type, fmi3Status, (In, Refs3, size_t, type *, size_t))                                                  \
    X(fmi3Set##Type, fmi3Status, (In, Refs3, size_t, const type *, size_t))
/* X(letter, Type, type): every type of numbers, an enumeration is an Int64 */
#define TYPES3(X)                                                                                                      \
    X('r', Float64, fmi3Float64) X('f', Float32, fmi3Float32) X('b', Boolean, fmi3Boolean)                             \
    X('a', Int8, fmi3Int8) X('A', UInt8, fmi3UInt8) X('s', Int16, fmi3Int16) X('S', UInt16, fmi3UInt16)                \
    X('i', Int32, fmi3Int32) X('I', UInt32, fmi3UInt32) X('l', Int64, fmi3Int64) X('L', UInt64, fmi3UInt64)
#define FUNCTIONS3(X)                                                                                                  \
    X(fmi3GetVersion, const char *, (void))                                                                            \
    X(fmi3InstantiateModelExchange, In, (fmi3String, fmi3String, fmi3String, bool, bool, void *, fmi3LogMessageCallback))\
    X(fmi3InstantiateCoSimulation, In, (fmi3String, fmi3String, fmi3String, bool, bool, bool, bool, Refs3, size_t,     \
                                        void *, fmi3LogMessageCallback, fmi3IntermediateUpdateCallback))               \
    X(fmi3FreeInstance, void, (In))                                                                                    \
    X(fmi3SetDebugLogging, fmi3Status, (In, bool, size_t, const fmi3String *))                                         \
    X(fmi3EnterInitializationMode, fmi3Status, (In, bool, Real, Real, bool, Real))                                     \
    X(fmi3ExitInitializationMode, fmi3Status, (In))                                                                    \
    X(fmi3EnterEventMode, fmi3Status, (In))                                                                            \
    X(fmi3EnterContinuousTimeMode, fmi3Status, (In))                                                                   \
    X(fmi3EnterStepMode, fmi3Status, (In))                                                                             \
    X(fmi3EnterConfigurationMode, fmi3Status, (In))                                                                    \
    X(fmi3Terminate, fmi3Status, (In))                                                                                 \
    X(fmi3Reset, fmi3Status, (In))                                                                                     \
    VALUES(X, Float64, fmi3Float64) VALUES(X, Float32, fmi3Float32) VALUES(X, Boolean, fmi3Boolean)                    \
    VALUES(X, Int8, fmi3Int8) VALUES(X, UInt8, fmi3UInt8) VALUES(X, Int16, fmi3Int16) VALUES(X, UInt16, fmi3UInt16)    \
    VALUES(X, Int32, fmi3Int32) VALUES(X, UInt32, fmi3UInt32) VALUES(X, Int64, fmi3Int64) VALUES(X, UInt64, fmi3UInt64)\
    VALUES(X, String, fmi3String)                                                                                      \
    X(fmi3GetClock, fmi3Status, (In, Refs3, size_t, fmi3Clock *))                                                      \
    X(fmi3SetClock, fmi3Status, (In, Refs3, size_t, const fmi3Clock *))                                                \
    X(fmi3GetIntervalDecimal, fmi3Status, (In, Refs3, size_t, Real *, fmi3IntervalQualifier *))                        \
    X(fmi3GetFMUState, fmi3Status, (In, fmi3FMUState *))                                                               \
    X(fmi3SetFMUState, fmi3Status, (In, fmi3FMUState))                                                                 \
    X(fmi3FreeFMUState, fmi3Status, (In, fmi3FMUState *))                                                              \
    X(fmi3SerializedFMUStateSize, fmi3Status, (In, fmi3FMUState, size_t *))                                            \
    X(fmi3SerializeFMUState, fmi3Status, (In, fmi3FMUState, fmi3Byte *, size_t))                                       \
    X(fmi3DeserializeFMUState, fmi3Status, (In, const fmi3Byte *, size_t, fmi3FMUState *))                             \
    X(fmi3GetDirectionalDerivative, fmi3Status, (In, Refs3, size_t, Refs3, size_t, const Real *, size_t, Real *, size_t))\
    X(fmi3GetAdjointDerivative, fmi3Status, (In, Refs3, size_t, Refs3, size_t, const Real *, size_t, Real *, size_t))  \
    X(fmi3EvaluateDiscreteStates, fmi3Status, (In))                                                                    \
    X(fmi3UpdateDiscreteStates, fmi3Status, (In, Flag, Flag, Flag, Flag, Flag, Real *))                                \
    X(fmi3CompletedIntegratorStep, fmi3Status, (In, bool, Flag, Flag))                                                 \
    X(fmi3SetTime, fmi3Status, (In, Real))                                                                             \
    X(fmi3SetContinuousStates, fmi3Status, (In, const Real *, size_t))                                                 \
    X(fmi3GetContinuousStates, fmi3Status, (In, Real *, size_t))                                                       \
    X(fmi3GetContinuousStateDerivatives, fmi3Status, (In, Real *, size_t))                                             \
    X(fmi3GetNominalsOfContinuousStates, fmi3Status, (In, Real *, size_t))                                             \
    X(fmi3GetEventIndicators, fmi3Status, (In, Real *, size_t))                                                        \
    X(fmi3GetNumberOfContinuousStates, fmi3Status, (In, size_t *))                                                     \
    X(fmi3GetNumberOfEventIndicators, fmi3Status, (In, size_t *))                                                      \
    X(fmi3GetOutputDerivatives, fmi3Status, (In, Refs3, size_t, const fmi3Int32 *, Real *, size_t))                    \
    X(fmi3DoStep, fmi3Status, (In, Real, Real, bool, Flag, Flag, Flag, Real *))

#endif
