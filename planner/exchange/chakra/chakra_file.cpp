#include "planner/exchange/chakra/chakra_file.h"

#include <cassert>
#include <cmath>
#include <cstdint>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <nlohmann/json.hpp>

#include <execution_trace.pb.h>

namespace plumb { inline namespace planner {
namespace {

namespace proto = ChakraProtoMsg;

constexpr const char* kSchemaVersion = "0.0.4";

proto::CollectiveCommType type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return proto::ALL_GATHER;
    case CollectiveKind::kReduceScatter:
      return proto::REDUCE_SCATTER;
    case CollectiveKind::kAllToAll:
      return proto::ALL_TO_ALL;
    case CollectiveKind::kBroadcast:
      return proto::BROADCAST;
    default:
      assert(kind == CollectiveKind::kAllReduce);  // cost tables price no others
      return proto::ALL_REDUCE;
  }
}

proto::AttributeProto& attribute(proto::Node& node, const char* name) {
  proto::AttributeProto& added = *node.add_attr();
  added.set_name(name);
  return added;
}

proto::Node node_of(const ChakraNode& from) {
  proto::Node node;
  node.set_id(from.id);
  node.set_name(from.name);
  for (const std::uint64_t id : from.after) node.add_data_deps(id);
  attribute(node, "is_cpu_op").set_bool_val(false);
  const auto set_bytes = [&] { attribute(node, "comm_size").set_int64_val(from.bytes); };
  switch (from.kind) {
    case ChakraNode::Kind::kCompute:
      node.set_type(proto::COMP_NODE);
      break;
    case ChakraNode::Kind::kCollective:
      node.set_type(proto::COMM_COLL_NODE);
      attribute(node, "comm_type").set_int64_val(type_of(from.collective));
      attribute(node, "pg_name").set_string_val(std::to_string(from.group));
      set_bytes();
      break;
    case ChakraNode::Kind::kSend:
    case ChakraNode::Kind::kReceive:
      node.set_type(from.kind == ChakraNode::Kind::kSend ? proto::COMM_SEND_NODE : proto::COMM_RECV_NODE);
      attribute(node, "comm_src").set_int32_val(from.source);
      attribute(node, "comm_dst").set_int32_val(from.destination);
      attribute(node, "comm_tag").set_int32_val(from.tag);
      set_bytes();
      break;
  }
  return node;
}

void write_delimited(const google::protobuf::MessageLite& message, google::protobuf::io::CodedOutputStream& stream) {
  stream.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
  message.SerializeToCodedStream(&stream);
}

}  // namespace

std::string chakra_file(const std::vector<ChakraNode>& nodes) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream target(&bytes);
    google::protobuf::io::CodedOutputStream stream(&target);
    proto::GlobalMetadata head;
    head.set_version(kSchemaVersion);
    write_delimited(head, stream);
    double exact = 0;
    for (const ChakraNode& from : nodes) {
      proto::Node node = node_of(from);
      if (from.kind == ChakraNode::Kind::kCompute) {
        const double begin = std::round(exact);
        exact += 1e6 * from.predicted.count();
        node.set_duration_micros(static_cast<std::uint64_t>(std::round(exact) - begin));
      }
      write_delimited(node, stream);
    }
  }
  return bytes;
}

std::string chakra_groups_file(const ChakraGroups& groups) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < groups.size(); ++i) json[std::to_string(i)] = groups[i];
  return json.dump() + "\n";
}

}}  // namespace plumb::planner
