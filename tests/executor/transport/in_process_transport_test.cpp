#include "executor/transport/in_process_transport.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <thread>

namespace plumb::test {
namespace {

constexpr TransportChannel kForward{0, 1, MessageKind::kActivation};

InProcessOptions options_with(Sends sends) {
  return {.ranks = 3, .sends = sends, .watchdog = Seconds{5}};
}

Tensor filled_tensor(TensorPool& pool, float value, std::int64_t elements = 4) {
  Tensor tensor = pool.take(elements);
  std::ranges::fill(tensor.values(), value);
  return tensor;
}

}  // namespace

TEST_CASE("messages of a channel arrive in the order in which they were sent, whoever comes first") {
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    TensorPool pool;
    InProcessTransport transport(options_with(sends), monotonic_clock());
    const TicketPtr early = transport.receive(kForward, {0, 0}, pool.take(4));
    const TicketPtr first = transport.send(kForward, {0, 0}, filled_tensor(pool, 1));
    const TicketPtr second = transport.send(kForward, {0, 1}, filled_tensor(pool, 2));
    const TicketPtr late = transport.receive(kForward, {0, 1}, pool.take(4));
    CHECK(transport.wait_received(early).tensor.data()[3] == 1);
    CHECK(transport.wait_received(late).tensor.data()[0] == 2);
    CHECK(transport.wait_sent(first).end <= transport.wait_sent(second).end);
  }
}

TEST_CASE("activations and gradients have channels of their own") {
  TensorPool pool;
  InProcessTransport transport(options_with(Sends::kBuffered), monotonic_clock());
  transport.send({0, 1, MessageKind::kGradient}, {0, 0}, filled_tensor(pool, 5));
  transport.send(kForward, {0, 0}, filled_tensor(pool, 6));
  CHECK(transport.wait_received(transport.receive(kForward, {0, 0}, pool.take(4))).tensor.data()[0] == 6);
}

TEST_CASE("a buffered message has left before its receive comes, and gives its memory back") {
  TensorPool pool;
  InProcessTransport transport(options_with(Sends::kBuffered), monotonic_clock());
  const TicketPtr sent = transport.send(kForward, {0, 0}, filled_tensor(pool, 1));
  transport.wait_sent(sent);
  CHECK(pool.live_bytes() == 0);
}

TEST_CASE("a rendezvous message leaves when its receive comes") {
  TensorPool pool;
  InProcessTransport transport(options_with(Sends::kRendezvous), monotonic_clock());
  const TicketPtr sent = transport.send(kForward, {0, 0}, filled_tensor(pool, 1));
  auto left = std::async(std::launch::async, [&] { return transport.wait_sent(sent); });
  CHECK(left.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  Received received = transport.wait_received(transport.receive(kForward, {0, 0}, pool.take(4)));
  CHECK(left.get().end == received.times.end);
}

TEST_CASE("ends that disagree about the message or its size are an error that names it") {
  TensorPool pool;
  InProcessTransport transport(options_with(Sends::kBuffered), monotonic_clock());
  transport.send(kForward, {0, 3}, filled_tensor(pool, 1));
  CHECK_THROWS_WITH_AS(
      transport.receive(kForward, {0, 2}, pool.take(4)),
      doctest::Contains("the activation of stage 0, micro-batch 3, from rank 0 to rank 1 was sent where"), RunError);
  transport.send(kForward, {0, 4}, filled_tensor(pool, 1));
  CHECK_THROWS_WITH_AS(transport.receive(kForward, {0, 4}, pool.take(5)), doctest::Contains("4 elements"), RunError);
}

TEST_CASE("an abort wakes who waits, now and later, with the first reason") {
  TensorPool pool;
  InProcessTransport transport(options_with(Sends::kBuffered), monotonic_clock());
  const TicketPtr ticket = transport.receive(kForward, {0, 0}, pool.take(4));
  std::string reason;
  std::thread waiting([&] {
    try {
      transport.wait_received(ticket);
    } catch (const RunAborted& aborted) {
      reason = aborted.what();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  transport.abort("rank 0 gave up");
  transport.abort("so did rank 2");
  waiting.join();
  CHECK(reason == "rank 0 gave up");
  CHECK_THROWS_AS(transport.wait_received(ticket), RunAborted);
  CHECK_THROWS_AS(transport.send(kForward, {0, 0}, filled_tensor(pool, 1)), RunAborted);
}

TEST_CASE("a wait during which nothing moves ends with what it waited for") {
  TensorPool pool;
  InProcessTransport transport({.ranks = 2, .watchdog = Seconds{0.05}}, monotonic_clock());
  const TicketPtr ticket = transport.receive(kForward, {0, 3}, pool.take(4));
  CHECK_THROWS_WITH_AS(
      transport.wait_received(ticket),
      "nothing moved for 0.05 s while it waited for the activation of stage 0, micro-batch 3, from rank 0 to rank 1",
      RunError);
}

TEST_CASE("a tensor is copied into the memory of a rank that takes no part in it") {
  TensorPool own, partner;
  InProcessOptions options = options_with(Sends::kBuffered);
  options.pools = {&own, &partner};
  InProcessTransport transport(options, monotonic_clock());
  Tensor tensor = filled_tensor(own, 3);
  tensor = transport.copy_to(1, tensor);
  CHECK(own.live_bytes() == 0);
  CHECK(partner.live_bytes() == 16);
  tensor = transport.copy_to(0, tensor);
  CHECK(partner.live_bytes() == 0);
  CHECK(tensor.data()[3] == 3);
  CHECK_THROWS_WITH_AS(transport.copy_to(2, tensor),
                       "there is no memory of rank 2 to copy to: give the transport the ranks' pools", RunError);
}

}  // namespace plumb::test
