/* A peer on Cyclone DDS 0.10, the generation below ROS 2 Jazzy, in C: it reads joint states and sends some.
   idlc joint_state.idl; cc cyclone_peer.c joint_state.c -lddsc; cyclone_peer DOMAIN SECONDS */
#include "joint_state.h"

#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>

#define STATE sensor_msgs_msg_dds__JointState_

int main(int argc, char **argv)
{
    const dds_domainid_t domain = (dds_domainid_t)atoi(argv[1]);
    const dds_time_t end = dds_time() + DDS_MSECS((int64_t)(1000.0 * atof(argv[2])));
    if (argc != 3)
        return 2;
    const char *config = "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface address=\"127.0.0.1\"/>"
                         "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto"
                         "</ParticipantIndex><MaxAutoParticipantIndex>99</MaxAutoParticipantIndex><Peers><Peer "
                         "Address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>";
    dds_create_domain(domain, config);
    const dds_entity_t me = dds_create_participant(domain, NULL, NULL);
    const dds_entity_t in = dds_create_topic(me, &sensor_msgs_msg_dds__JointState__desc, "rt/joint_states", NULL, NULL);
    const dds_entity_t out = dds_create_topic(me, &sensor_msgs_msg_dds__JointState__desc, "rt/joint_commands", NULL, NULL);
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1000);
    const dds_entity_t reader = dds_create_reader(me, in, qos, NULL);
    const dds_entity_t writer = dds_create_writer(me, out, qos, NULL);
    dds_delete_qos(qos);
    long count = 0;
    int whole = 1;
    double last = 0.0;
    for (int32_t sent = 0; dds_time() < end; sent++) {
        void *samples[1] = {NULL};
        dds_sample_info_t info;
        while (dds_take(reader, samples, &info, 1, 1) == 1) {
            const STATE *state = samples[0];
            if (info.valid_data) {
                if (count == 0)
                    printf("first %s %s %u %u\n", state->header.frame_id, state->name._buffer[0], state->name._length,
                           state->velocity._length);
                else if (state->position._buffer[0] != last + 1.0)
                    whole = 0;
                last = state->position._buffer[0];
                count++;
            }
            dds_return_loan(reader, samples, 1);
        }
        char *names[2] = {"a", "bcd"};
        double q[2] = {1.5, sent}, tau[1] = {2.5};
        STATE state = {0};
        state.header.stamp.sec = sent;
        state.header.stamp.nanosec = 7;
        state.header.frame_id = "cyclone";
        state.name._length = 2, state.name._buffer = names;
        state.position._length = 2, state.position._buffer = q;
        state.effort._length = 1, state.effort._buffer = tau;
        dds_write(writer, &state);
        dds_sleepfor(DDS_MSECS(5));
    }
    printf("received %ld last %f %s\n", count, last, whole ? "whole" : "broken");
    return 0;
}
