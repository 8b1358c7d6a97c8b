#include "planner/exchange/chakra/chakra_file.h"

#include <doctest/doctest.h>
#include <google/protobuf/io/coded_stream.h>
#include <nlohmann/json.hpp>

#include <execution_trace.pb.h>

namespace plumb::test {
namespace {

/// Reads the delimited messages as a reader of the schema does.
std::vector<ChakraProtoMsg::Node> read_nodes(const std::string& bytes, ChakraProtoMsg::GlobalMetadata& head) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  std::vector<ChakraProtoMsg::Node> nodes;
  std::uint32_t size = 0;
  for (bool first = true; stream.ReadVarint32(&size); first = false) {
    std::string message;
    REQUIRE(stream.ReadString(&message, static_cast<int>(size)));
    if (first) {
      REQUIRE(head.ParseFromString(message));
    } else {
      REQUIRE(nodes.emplace_back().ParseFromString(message));
    }
  }
  return nodes;
}

}  // namespace

TEST_CASE("nodes are read back by the schema") {
  ChakraProtoMsg::GlobalMetadata head;
  const std::vector<ChakraProtoMsg::Node> nodes =
      read_nodes(chakra_file({{.id = 0, .name = "0F0", .predicted = Seconds{1.6e-6}},
                              {.kind = ChakraNode::Kind::kCollective,
                               .id = 1,
                               .name = "0F0",
                               .after = {0},
                               .collective = CollectiveKind::kReduceScatter,
                               .bytes = 4096,
                               .group = 3},
                              {.id = 2, .name = "0B0", .after = {1}, .predicted = Seconds{1.6e-6}},
                              {.kind = ChakraNode::Kind::kSend,
                               .id = 3,
                               .name = "0SEND_F0",
                               .after = {0},
                               .bytes = 7,
                               .source = 1,
                               .destination = 2,
                               .tag = 9}}),
                 head);
  CHECK(head.version() == "0.0.4");
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0].type() == ChakraProtoMsg::COMP_NODE);
  CHECK(nodes[0].duration_micros() == 2);
  CHECK(nodes[2].duration_micros() == 1);  // 3.2 us in all
  CHECK(nodes[1].type() == ChakraProtoMsg::COMM_COLL_NODE);
  CHECK(nodes[1].data_deps(0) == 0);
  const auto value = [](const ChakraProtoMsg::Node& node, const std::string& name) {
    for (const auto& attribute : node.attr()) {
      if (attribute.name() == name) return attribute;
    }
    return ChakraProtoMsg::AttributeProto{};
  };
  CHECK(value(nodes[1], "comm_type").int64_val() == ChakraProtoMsg::REDUCE_SCATTER);
  CHECK(value(nodes[1], "comm_size").int64_val() == 4096);
  CHECK(value(nodes[1], "pg_name").string_val() == "3");
  CHECK(value(nodes[3], "comm_dst").int32_val() == 2);
  CHECK(value(nodes[3], "comm_tag").int32_val() == 9);
}

TEST_CASE("groups are numbered as the nodes name them") {
  CHECK(nlohmann::json::parse(chakra_groups_file({{0, 1}, {0, 2}})) == nlohmann::json({{"0", {0, 1}}, {"1", {0, 2}}}));
}

}  // namespace plumb::test
