// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/sharding/base/stable_hash.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

uint64_t HashRanks(absl::Span<const int> ranks) {
  StableHash hash;
  for (int rank : ranks) hash.AddWord(static_cast<uint64_t>(rank));
  return hash.value();
}

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectMpi(absl::Duration deadline,
                                                         const MpiOptions& options) {
  const absl::Duration start = options.start_deadline > absl::ZeroDuration()
                                   ? options.start_deadline
                                   : std::max(deadline, absl::Seconds(30));
  SHARDCALL_ASSIGN_OR_RETURN(MpiSession * session, MpiSession::Open(start));
  session->set_end_deadline(options.end_deadline);
  return std::make_unique<MpiCommunicator>(*session, deadline, options.check_every_call);
}

absl::StatusOr<const MpiCommunicator::Members*> MpiCommunicator::FindMembers(Group group) {
  const auto it = members_.find(group);
  if (it != members_.end()) return it->second.get();
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(group, rank(), size()));
  auto members = std::make_unique<Members>();
  members->ranks.assign(group.begin(), group.end());
  members->me = static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
  members->hash = HashRanks(group);
  std::vector<int> key = members->ranks;
  return members_.emplace(std::move(key), std::move(members)).first->second.get();
}

absl::Status MpiCommunicator::Recorded(const CallSignature& signature, absl::Span<const int> ranks,
                                       CollectiveTag tag,
                                       absl::FunctionRef<absl::Status(const MpiMeeting&)> body) {
  std::lock_guard<std::mutex> lock(session_.call_mutex());
  // A rank that waits for no other would not notice a failure otherwise.
  const bool alone = ranks.empty() || (ranks.size() == 1 && ranks[0] == rank());
  SHARDCALL_RETURN_IF_ERROR(alone ? session_.Poll() : session_.PollNowAndThen());
  MpiMeeting meeting;
  meeting.signature = signature;
  meeting.name = tag.name;
  meeting.number = session_.recorder().Begin(signature, ranks, tag.name);
  absl::Status status = body(meeting);
  session_.recorder().End(status.ok());
  return status;
}

absl::Status MpiCommunicator::Run(Group group, const CallSignature& signature, CollectiveTag tag,
                                  absl::FunctionRef<absl::Status(Call&)> body) {
  SHARDCALL_ASSIGN_OR_RETURN(const Members* members, FindMembers(group));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, members->count()));
  return Recorded(signature, group, tag, [&](const MpiMeeting& meeting) {
    Call call;
    call.members = members;
    call.meeting = meeting;
    call.meeting.group_hash = members->hash;
    return body(call);
  });
}

absl::Status MpiCommunicator::BeginWithAll(Call& call, int64_t bytes) {
  for (int j = 0; j < call.members->count(); ++j) {
    if (j == call.members->me) continue;
    call.partners.push_back({call.members->ranks[j], MpiRole::kBoth, bytes, bytes});
  }
  return rendezvous_.Begin(call.meeting, call.partners);
}

absl::Status MpiCommunicator::Move(Call& call, absl::FunctionRef<Transfer(int)> transfer_of) {
  const int n = call.members->count();
  const int me = call.members->me;
  const auto partner_of = [&](int j) -> const MpiPartner& {
    return call.partners[j - (j > me ? 1 : 0)];
  };
  MpiMessages messages(session_);
  // Each begins with its successor, so that not all send to the same member at once.
  for (int step = 1; step < n; ++step) {
    const int j = (me + n - step) % n;
    const MpiPartner& partner = partner_of(j);
    const Transfer t = transfer_of(j);
    messages.Receive(partner.rank, rendezvous_.ReceiveTag(partner), t.receive, t.receive_bytes);
  }
  for (int step = 1; step < n; ++step) {
    const int j = (me + step) % n;
    const MpiPartner& partner = partner_of(j);
    const Transfer t = transfer_of(j);
    messages.Send(partner.rank, rendezvous_.SendTag(partner), t.send, t.send_bytes);
  }
  const Transfer own = transfer_of(me);
  // Copy a short own block while waiting for messages; a long copy would delay the other ranks'
  // messages.
  const bool copy_last = own.send_bytes > (1 << 20);
  if (!copy_last) Copy(own.receive, own.send, own.send_bytes);
  SHARDCALL_RETURN_IF_ERROR(rendezvous_.Await(messages));
  if (copy_last) Copy(own.receive, own.send, own.send_bytes);
  return absl::OkStatus();
}

absl::Status MpiCommunicator::Exchange(Call& call, absl::FunctionRef<Transfer(int)> transfer_of) {
  for (int j = 0; j < call.members->count(); ++j) {
    if (j == call.members->me) continue;
    const Transfer t = transfer_of(j);
    call.partners.push_back(
        {call.members->ranks[j], MpiRole::kBoth, t.send_bytes, t.receive_bytes});
  }
  SHARDCALL_RETURN_IF_ERROR(rendezvous_.Begin(call.meeting, call.partners));
  SHARDCALL_RETURN_IF_ERROR(Move(call, transfer_of));
  rendezvous_.End();
  return absl::OkStatus();
}

absl::Status MpiCommunicator::Barrier(Group group, CollectiveTag tag) {
  return Run(group, {.op = CollectiveOp::kBarrier}, tag,
             [&](Call& call) { return Exchange(call, [](int) { return Transfer(); }); });
}

absl::Status MpiCommunicator::AllGather(Group group, const void* in, void* out, int64_t bytes,
                                        CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllGather, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    char* const blocks = static_cast<char*>(out);
    const char* from = static_cast<const char*>(in);
    // In place, another block overwrites the input. A long output is also sent from the output: it
    // was just written, so it is in the cache, and the input need not be.
    constexpr int64_t kLong = 4 << 20;
    if (in == out || bytes >= kLong / call.members->count()) {
      char* const mine = blocks + call.members->me * bytes;
      Copy(mine, in, bytes);
      from = mine;
    }
    return Exchange(call, [&](int j) { return Transfer{from, bytes, blocks + j * bytes, bytes}; });
  });
}

absl::Status MpiCommunicator::AllToAll(Group group, const void* in, void* out, int64_t bytes,
                                       CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllToAll, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const char* from = static_cast<const char*>(in);
    char* const to = static_cast<char*>(out);
    if (in == out && bytes > 0) {
      const int64_t total = bytes * call.members->count();
      char* const copy = session_.Scratch(total);
      Copy(copy, in, total);
      from = copy;
    }
    return Exchange(
        call, [&](int j) { return Transfer{from + j * bytes, bytes, to + j * bytes, bytes}; });
  });
}

absl::Status MpiCommunicator::AllToAllV(Group group, const void* in,
                                        absl::Span<const int64_t> send_offsets,
                                        absl::Span<const int64_t> send_sizes, void* out,
                                        absl::Span<const int64_t> recv_offsets,
                                        absl::Span<const int64_t> recv_sizes, CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllToAllV};
  SHARDCALL_RETURN_IF_ERROR(
      CheckBlocks(group.size(), send_offsets, send_sizes, recv_offsets, recv_sizes));
  return Run(group, signature, tag, [&](Call& call) {
    int64_t in_bytes = 0;
    int64_t out_bytes = 0;
    for (size_t j = 0; j < group.size(); ++j) {
      if (send_sizes[j] > 0) in_bytes = std::max(in_bytes, send_offsets[j] + send_sizes[j]);
      if (recv_sizes[j] > 0) out_bytes = std::max(out_bytes, recv_offsets[j] + recv_sizes[j]);
    }
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, in_bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, out_bytes, "output", signature));
    const char* from = static_cast<const char*>(in);
    char* const to = static_cast<char*>(out);
    if (in == out && in_bytes > 0) {
      char* const copy = session_.Scratch(in_bytes);
      Copy(copy, in, in_bytes);
      from = copy;
    }
    return Exchange(call, [&](int j) {
      return Transfer{from + send_offsets[j], send_sizes[j], to + recv_offsets[j], recv_sizes[j]};
    });
  });
}

absl::Status MpiCommunicator::Broadcast(Group group, int root, void* buffer, int64_t bytes,
                                        CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kBroadcast, .root = root, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(buffer, bytes, "buffer", signature));
    const Members& members = *call.members;
    for (int j = 0; j < members.count() && members.me == root; ++j) {
      if (j != root) call.partners.push_back({members.ranks[j], MpiRole::kSender, bytes, 0});
    }
    if (members.me != root) {
      call.partners.push_back({members.ranks[root], MpiRole::kReceiver, 0, bytes});
    }
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Begin(call.meeting, call.partners));
    MpiMessages messages(session_);
    for (const MpiPartner& partner : call.partners) {
      if (partner.role == MpiRole::kReceiver) {
        messages.Receive(partner.rank, rendezvous_.ReceiveTag(partner), buffer, bytes);
      } else {
        // Synchronous, so that the root learns of members that are in another call.
        messages.Send(partner.rank, rendezvous_.SendTag(partner), buffer, bytes, true);
      }
    }
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Await(messages));
    rendezvous_.End();
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::PointToPoint(const CallSignature& signature, int partner_rank,
                                           void* data, CollectiveTag tag) {
  const int ranks[] = {rank(), partner_rank};
  const int64_t bytes = signature.amount;
  return Recorded(signature, ranks, tag, [&](const MpiMeeting& meeting) {
    const bool sends = signature.op == CollectiveOp::kSend;
    MpiPartner partner;
    partner.rank = partner_rank;
    partner.role = sends ? MpiRole::kSender : MpiRole::kReceiver;
    (sends ? partner.send_bytes : partner.receive_bytes) = bytes;
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Begin(meeting, absl::MakeConstSpan(&partner, 1)));
    MpiMessages messages(session_);
    if (sends) {
      messages.Send(partner_rank, rendezvous_.SendTag(partner), data, bytes, true);
    } else {
      messages.Receive(partner_rank, rendezvous_.ReceiveTag(partner), data, bytes);
    }
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Await(messages));
    rendezvous_.End();
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::PermuteWith(const CallSignature& signature, int source, int target,
                                          const void* in, void* out, CollectiveTag tag) {
  const int64_t bytes = signature.amount;
  const bool sends = target >= 0 && target != rank();
  const bool receives = source >= 0 && source != rank();
  // Only one partner, if source and target are the same rank.
  absl::InlinedVector<MpiPartner, 2> partners;
  absl::InlinedVector<int, 2> ranks;
  if (receives) partners.push_back({source, MpiRole::kReceiver, 0, bytes});
  if (sends && source == target) {
    partners[0] = {source, MpiRole::kBoth, bytes, bytes};
  } else if (sends) {
    partners.push_back({target, MpiRole::kSender, bytes, 0});
  }
  for (const MpiPartner& partner : partners) ranks.push_back(partner.rank);
  return Recorded(signature, ranks, tag, [&](const MpiMeeting& meeting) {
    if (source == rank()) Copy(out, in, bytes);
    const void* from = in;
    if (sends && receives && in == out && bytes > 0) {
      char* const copy = session_.Scratch(bytes);
      Copy(copy, in, bytes);
      from = copy;
    }
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Begin(meeting, partners));
    MpiMessages messages(session_);
    if (receives) {
      messages.Receive(source, rendezvous_.ReceiveTag(partners.front()), out, bytes);
    }
    if (sends) {
      messages.Send(target, rendezvous_.SendTag(partners.back()), from, bytes, true);
    }
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Await(messages));
    rendezvous_.End();
    // Last, since out may be the buffer that was sent.
    if (source < 0 && bytes > 0) std::memset(out, 0, bytes);
    return absl::OkStatus();
  });
}

Departures MpiCommunicator::FindDeparted(Group group) {
  Departures departures{MpiSession::terminated(), {}};
  for (int rank : group) {
    const bool ended = session_.peers().StateOf(rank) == MpiPeers::State::kEnded;
    if (rank != session_.rank() && ended) departures.ended.push_back(rank);
  }
  return departures;
}

}  // namespace shardcall
