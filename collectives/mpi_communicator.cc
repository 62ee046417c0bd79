// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi_communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "collectives/mpi.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int kBulkTag = 2;

// The same on every rank, unlike a seeded hash.
uint64_t HashRanks(absl::Span<const int> ranks) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int rank : ranks) hash = (hash ^ static_cast<uint64_t>(rank)) * 0x100000001b3u;
  return hash;
}

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectMpi(absl::Duration deadline) {
  SHARDCALL_ASSIGN_OR_RETURN(MpiSession * session, MpiSession::Open(deadline));
  return std::make_unique<MpiCommunicator>(*session, deadline);
}

absl::StatusOr<const MpiCommunicator::Members*> MpiCommunicator::FindMembers(Group group) {
  std::vector<int> ranks(group.begin(), group.end());
  const auto it = members_.find(ranks);
  if (it != members_.end()) return &it->second;
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(group, rank(), size()));
  Members members;
  members.me = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  members.hash = HashRanks(ranks);
  members.ranks = ranks;
  return &members_.emplace(std::move(ranks), std::move(members)).first->second;
}

absl::Status MpiCommunicator::Recorded(
    const CallSignature& signature, absl::Span<const int> ranks, CollectiveTag tag,
    const std::function<absl::Status(const MpiRendezvous::Meeting&)>& body) {
  std::lock_guard<std::mutex> lock(session_.call_mutex());
  SHARDCALL_RETURN_IF_ERROR(session_.Poll());
  MpiRendezvous::Meeting meeting;
  meeting.signature = signature;
  meeting.name = tag.name;
  meeting.number = session_.recorder().Begin(signature, ranks, tag.name);
  absl::Status status = body(meeting);
  session_.recorder().End(status.ok());
  return status;
}

absl::Status MpiCommunicator::Run(Group group, const CallSignature& signature, CollectiveTag tag,
                                  const std::function<absl::Status(Call&)>& body) {
  SHARDCALL_ASSIGN_OR_RETURN(const Members* members, FindMembers(group));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, members->count()));
  return Recorded(signature, group, tag, [&](const MpiRendezvous::Meeting& meeting) {
    Call call;
    call.members = members;
    call.meeting = meeting;
    call.meeting.group_hash = members->hash;
    return body(call);
  });
}

absl::Status MpiCommunicator::Meet(Call& call, const std::function<Block(int)>& block_of) {
  const Members& members = *call.members;
  for (int j = 0; j < members.count(); ++j) {
    if (j == members.me) continue;
    const Block block = block_of(j);
    MpiPartner partner;
    partner.rank = members.ranks[j];
    partner.send_data = block.send;
    partner.send_bytes = block.send_bytes;
    partner.receive_bytes = block.receive_bytes;
    call.partners.push_back(partner);
  }
  if (call.partners.empty()) return absl::OkStatus();
  return rendezvous_.Meet(call.meeting, absl::MakeSpan(call.partners));
}

const char* MpiCommunicator::Received(const Call& call, int j) {
  return call.partners[j - (j > call.members->me ? 1 : 0)].received;
}

absl::Status MpiCommunicator::Await(const MpiRendezvous::Meeting& meeting, MpiMessages& messages) {
  const absl::Status status = messages.Await(deadline_);
  if (status.ok()) return status;
  if (absl::IsDeadlineExceeded(status) && status.message().empty()) {
    return session_.Fail(rendezvous_.Stalled(meeting, messages.pending_peers()));
  }
  return session_.Fail(status);
}

absl::Status MpiCommunicator::Exchange(Call& call,
                                       const std::function<Transfer(int)>& transfer_of) {
  const Members& members = *call.members;
  SHARDCALL_RETURN_IF_ERROR(Meet(call, [&](int j) {
    const Transfer t = transfer_of(j);
    return Block{t.send, t.send_bytes, t.receive_bytes};
  }));
  MpiMessages messages(session_);
  const int n = members.count();
  // Each starts with its successor, so that not all send to one member at once.
  for (int step = 1; step < n; ++step) {
    const int j = (members.me + n - step) % n;
    const Transfer t = transfer_of(j);
    if (t.receive_bytes > kInlineBytes) {
      messages.Receive(members.ranks[j], kBulkTag, t.receive, t.receive_bytes);
    }
  }
  for (int step = 1; step < n; ++step) {
    const int j = (members.me + step) % n;
    const Transfer t = transfer_of(j);
    if (t.send_bytes > kInlineBytes) {
      messages.Send(members.ranks[j], kBulkTag, t.send, t.send_bytes);
    }
  }
  const Transfer own = transfer_of(members.me);
  Copy(own.receive, own.send, own.send_bytes);
  for (int j = 0; j < n; ++j) {
    if (j == members.me) continue;
    const Transfer t = transfer_of(j);
    if (t.receive_bytes <= kInlineBytes) Copy(t.receive, Received(call, j), t.receive_bytes);
  }
  return Await(call.meeting, messages);
}

absl::Status MpiCommunicator::Barrier(Group group, CollectiveTag tag) {
  return Run(group, {.op = CollectiveOp::kBarrier}, tag,
             [&](Call& call) { return Meet(call, [](int) { return Block(); }); });
}

absl::Status MpiCommunicator::AllGather(Group group, const void* in, void* out, int64_t bytes,
                                        CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllGather, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    // Sent from its place in out, for `in` may be where another block goes.
    char* const blocks = static_cast<char*>(out);
    char* const mine = blocks + call.members->me * bytes;
    Copy(mine, in, bytes);
    return Exchange(call, [&](int j) { return Transfer{mine, bytes, blocks + j * bytes, bytes}; });
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
    return Exchange(call, [&](int j) {
      return Transfer{from + j * bytes, bytes, to + j * bytes, bytes};
    });
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
    char* const data = static_cast<char*>(buffer);
    const int me = call.members->me;
    return Exchange(call, [&](int j) {
      return Transfer{data, me == root ? bytes : 0, data, j == root && j != me ? bytes : 0};
    });
  });
}

absl::Status MpiCommunicator::Send(int to, const void* data, int64_t bytes, CollectiveTag tag) {
  return PointToPoint(CollectiveOp::kSend, to, const_cast<void*>(data), bytes, tag);
}

absl::Status MpiCommunicator::Recv(int from, void* data, int64_t bytes, CollectiveTag tag) {
  return PointToPoint(CollectiveOp::kRecv, from, data, bytes, tag);
}

absl::Status MpiCommunicator::PointToPoint(CollectiveOp op, int partner_rank, void* data,
                                           int64_t bytes, CollectiveTag tag) {
  const CallSignature signature{.op = op, .amount = bytes};
  const int ranks[] = {rank(), partner_rank};
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(ranks, rank(), size()));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, 1));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(data, bytes, "buffer", signature));
  return Recorded(signature, ranks, tag, [&](const MpiRendezvous::Meeting& meeting) {
    const bool sends = op == CollectiveOp::kSend;
    MpiPartner partner;
    partner.rank = partner_rank;
    partner.role = sends ? MpiRole::kSender : MpiRole::kReceiver;
    partner.send_data = data;
    (sends ? partner.send_bytes : partner.receive_bytes) = bytes;
    SHARDCALL_RETURN_IF_ERROR(rendezvous_.Meet(meeting, absl::MakeSpan(&partner, 1)));
    MpiMessages messages(session_);
    if (bytes > kInlineBytes) {
      sends ? messages.Send(partner_rank, kBulkTag, data, bytes)
            : messages.Receive(partner_rank, kBulkTag, data, bytes);
    } else if (!sends) {
      Copy(data, partner.received, bytes);
    }
    return Await(meeting, messages);
  });
}

absl::Status MpiCommunicator::Permute(absl::Span<const std::pair<int, int>> pairs, const void* in,
                                      void* out, int64_t bytes, CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kPermute, .amount = bytes};
  int source;
  int target;
  SHARDCALL_RETURN_IF_ERROR(FindPartners(pairs, rank(), size(), &source, &target));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, 1));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
  const bool sends = target >= 0 && target != rank();
  const bool receives = source >= 0 && source != rank();
  std::vector<int> ranks;
  if (sends) ranks.push_back(target);
  if (receives && source != target) ranks.push_back(source);
  return Recorded(signature, ranks, tag, [&](const MpiRendezvous::Meeting& meeting) {
    if (source == rank()) Copy(out, in, bytes);
    std::vector<MpiPartner> partners;
    if (sends) {
      MpiPartner& partner = partners.emplace_back();
      partner.rank = target;
      partner.role = MpiRole::kSender;
      partner.send_data = in;
      partner.send_bytes = bytes;
    }
    if (receives) {
      MpiPartner& partner = partners.emplace_back();
      partner.rank = source;
      partner.role = MpiRole::kReceiver;
      partner.receive_bytes = bytes;
    }
    if (!partners.empty()) {
      SHARDCALL_RETURN_IF_ERROR(rendezvous_.Meet(meeting, absl::MakeSpan(partners)));
    }
    MpiMessages messages(session_);
    if (bytes > kInlineBytes) {
      const void* from = in;
      if (sends && receives && in == out) {
        char* const copy = session_.Scratch(bytes);
        Copy(copy, in, bytes);
        from = copy;
      }
      if (receives) messages.Receive(source, kBulkTag, out, bytes);
      if (sends) messages.Send(target, kBulkTag, from, bytes);
    } else if (receives) {
      Copy(out, partners.back().received, bytes);
    }
    SHARDCALL_RETURN_IF_ERROR(Await(meeting, messages));
    // Last, since out may be the memory that was sent.
    if (source < 0 && bytes > 0) std::memset(out, 0, bytes);
    return absl::OkStatus();
  });
}

}  // namespace shardcall
