// A peer on Fast DDS, the library below ROS 2's default middleware: listens to a robot, and sends joint states to it.
// g++ fast_peer.cpp -lfastrtps -lfastcdr; fast_peer DOMAIN SECONDS: prints what it discovered and received, as lines.
#include <fastcdr/Cdr.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace eprosima::fastdds::dds;
using namespace eprosima::fastdds::rtps;
using namespace eprosima::fastrtps::rtps;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

static std::mutex said;
static void say(const std::string &line)
{
    std::lock_guard<std::mutex> lock(said);
    std::cout << line << std::endl;
}

struct Bytes {
    std::vector<unsigned char> data;
};

// A type of which only the name is known: bytes in, bytes out, without keys and without type information.
class Plain : public TopicDataType {
public:
    explicit Plain(const char *name)
    {
        setName(name);
        m_typeSize = 1 << 20;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *from, SerializedPayload_t *to) override
    {
        auto &data = static_cast<Bytes *>(from)->data;
        memcpy(to->data, data.data(), data.size());
        to->length = data.size();
        to->encapsulation = CDR_LE;
        return true;
    }
    bool deserialize(SerializedPayload_t *from, void *to) override
    {
        static_cast<Bytes *>(to)->data.assign(from->data, from->data + from->length);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *of) override
    {
        return [of] { return uint32_t(static_cast<Bytes *>(of)->data.size()); };
    }
    void *createData() override { return new Bytes; }
    void deleteData(void *data) override { delete static_cast<Bytes *>(data); }
    bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};

static std::string text(const std::vector<octet> &data) { return std::string(data.begin(), data.end()); }

struct Seen : DomainParticipantListener {
    void on_participant_discovery(DomainParticipant *, ParticipantDiscoveryInfo &&i) override
    {
        if (i.status == ParticipantDiscoveryInfo::DISCOVERED_PARTICIPANT)
            say("participant " + text(i.info.m_userData));
    }
    void on_publisher_discovery(DomainParticipant *, WriterDiscoveryInfo &&i) override
    {
        if (i.status == WriterDiscoveryInfo::DISCOVERED_WRITER)
            say("writer " + i.info.topicName().to_string() + " " + i.info.typeName().to_string() + " " +
                text(i.info.m_qos.m_userData.data_vec()) + (i.info.topicKind() == NO_KEY ? " keyless" : " keyed"));
    }
    void on_subscriber_discovery(DomainParticipant *, ReaderDiscoveryInfo &&i) override
    {
        if (i.status == ReaderDiscoveryInfo::DISCOVERED_READER)
            say("reader " + i.info.topicName().to_string() + " " + i.info.typeName().to_string());
    }
};

int main(int, char **argv)
{
    DomainParticipantQos qos;
    const std::string enclave = "enclave=/;";
    qos.name("/");
    qos.user_data().setValue(std::vector<octet>(enclave.begin(), enclave.end()));
    qos.transport().use_builtin_transports = false;
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.push_back("127.0.0.1");
    qos.transport().user_transports.push_back(udp);
    Locator_t here;
    here.kind = LOCATOR_KIND_UDPv4;
    IPLocator::setIPv4(here, "127.0.0.1");
    qos.wire_protocol().builtin.initialPeersList.push_back(here);

    Seen seen;
    auto *factory = DomainParticipantFactory::get_instance();
    auto *me = factory->create_participant(atoi(argv[1]), qos, &seen, StatusMask::none());
    TypeSupport states(new Plain("sensor_msgs::msg::dds_::JointState_")), texts(new Plain("std_msgs::msg::dds_::String_"));
    TypeSupport graph(new Plain("rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"));
    for (auto *type : {&states, &texts, &graph})
        type->register_type(me);
    auto topic = [&](const char *name, TypeSupport &type) {
        return me->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT);
    };
    auto *in = me->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    auto *out = me->create_publisher(PUBLISHER_QOS_DEFAULT);
    DataReaderQos plain;
    plain.reliability().kind = RELIABLE_RELIABILITY_QOS;
    plain.history().depth = 1000;
    DataReaderQos kept = plain;
    kept.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
    auto *from_states = in->create_datareader(topic("rt/joint_states", states), plain);
    auto *from_text = in->create_datareader(topic("rt/robot_description", texts), kept);
    auto *from_graph = in->create_datareader(topic("ros_discovery_info", graph), kept);
    DataWriterQos sending;
    sending.reliability().kind = RELIABLE_RELIABILITY_QOS;
    sending.endpoint().history_memory_policy = PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    auto *to_states = out->create_datawriter(topic("rt/joint_commands", states), sending);

    long count = 0, sent = 0;
    double last = 0;
    bool whole = true;
    std::string frame;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(int(1000 * atof(argv[2])));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    while (std::chrono::steady_clock::now() < end) {
        Bytes got;
        SampleInfo info;
        while (from_states->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK && info.valid_data) {
            FastBuffer buffer(reinterpret_cast<char *>(got.data.data()), got.data.size());
            Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
            int32_t sec;
            uint32_t nanosec;
            std::vector<std::string> names;
            std::vector<double> q, qd, tau;
            cdr.read_encapsulation();
            cdr >> sec >> nanosec >> frame >> names >> q >> qd >> tau;
            if (count && q[0] != last + 1.0)
                whole = false;
            last = q[0];
            count++;
            if (count == 1)
                say("first " + frame + " " + names[0] + " " + std::to_string(names.size()) + " " + std::to_string(qd.size()));
        }
        while (from_text->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK && info.valid_data)
            say("description " + std::to_string(got.data.size()));
        while (from_graph->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK && info.valid_data)
            say("graph " + std::to_string(got.data.size()));
        char room[512];
        FastBuffer buffer(room, sizeof room);
        Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
        cdr.serialize_encapsulation();
        cdr << int32_t(sent) << uint32_t(7) << std::string("fast") << std::vector<std::string>{"a", "bcd"}
            << std::vector<double>{1.5, double(sent)} << std::vector<double>{} << std::vector<double>{2.5};
        Bytes one;
        one.data.assign(room, room + cdr.getSerializedDataLength());
        to_states->write(&one);
        sent++;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    say("received " + std::to_string(count) + " last " + std::to_string(last) + (whole ? " whole" : " broken"));
    return 0;
}
