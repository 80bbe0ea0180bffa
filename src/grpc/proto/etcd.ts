/** etcd's API v3 (L1), the services that a store and its administration need. Upstream: etcd api/v3 etcdserverpb/rpc.proto, mvccpb/kv.proto (v3.6). */
export const etcdProto = `
package etcdserverpb;
service KV {
  rpc Range(RangeRequest) returns (RangeResponse);
  rpc Put(PutRequest) returns (PutResponse);
  rpc DeleteRange(DeleteRangeRequest) returns (DeleteRangeResponse);
  rpc Txn(TxnRequest) returns (TxnResponse);
  rpc Compact(CompactionRequest) returns (CompactionResponse);
}
service Watch { rpc Watch(stream WatchRequest) returns (stream WatchResponse); }
service Lease {
  rpc LeaseGrant(LeaseGrantRequest) returns (LeaseGrantResponse);
  rpc LeaseRevoke(LeaseRevokeRequest) returns (LeaseRevokeResponse);
  rpc LeaseKeepAlive(stream LeaseKeepAliveRequest) returns (stream LeaseKeepAliveResponse);
  rpc LeaseTimeToLive(LeaseTimeToLiveRequest) returns (LeaseTimeToLiveResponse);
  rpc LeaseLeases(LeaseLeasesRequest) returns (LeaseLeasesResponse);
}
service Maintenance {
  rpc Alarm(AlarmRequest) returns (AlarmResponse);
  rpc Status(StatusRequest) returns (StatusResponse);
  rpc Defragment(DefragmentRequest) returns (DefragmentResponse);
  rpc MoveLeader(MoveLeaderRequest) returns (MoveLeaderResponse);
  rpc Hash(HashRequest) returns (HashResponse);
  rpc HashKV(HashKVRequest) returns (HashKVResponse);
  rpc Snapshot(SnapshotRequest) returns (stream SnapshotResponse);
}
service Cluster {
  rpc MemberAdd(MemberAddRequest) returns (MemberAddResponse);
  rpc MemberRemove(MemberRequest) returns (MemberListResponse);
  rpc MemberList(MemberListRequest) returns (MemberListResponse);
  rpc MemberPromote(MemberRequest) returns (MemberListResponse);
}
service Auth {
  rpc AuthEnable(AuthStatusRequest) returns (AuthResponse);
  rpc AuthDisable(AuthStatusRequest) returns (AuthResponse);
  rpc AuthStatus(AuthStatusRequest) returns (AuthStatusResponse);
  rpc Authenticate(AuthenticateRequest) returns (AuthenticateResponse);
  rpc UserAdd(AuthUserAddRequest) returns (AuthResponse);
  rpc UserGet(AuthUserRequest) returns (AuthNamesResponse);
  rpc UserList(AuthStatusRequest) returns (AuthNamesResponse);
  rpc UserDelete(AuthUserRequest) returns (AuthResponse);
  rpc UserChangePassword(AuthUserChangePasswordRequest) returns (AuthResponse);
  rpc UserGrantRole(AuthUserRoleRequest) returns (AuthResponse);
  rpc UserRevokeRole(AuthUserRoleRequest) returns (AuthResponse);
  rpc RoleAdd(AuthRoleRequest) returns (AuthResponse);
  rpc RoleGet(AuthRoleRequest) returns (AuthRoleGetResponse);
  rpc RoleList(AuthStatusRequest) returns (AuthNamesResponse);
  rpc RoleDelete(AuthRoleRequest) returns (AuthResponse);
  rpc RoleGrantPermission(AuthRoleGrantPermissionRequest) returns (AuthResponse);
  rpc RoleRevokePermission(AuthRoleRevokePermissionRequest) returns (AuthResponse);
}

message ResponseHeader { uint64 cluster_id = 1 [jstype = JS_STRING]; uint64 member_id = 2; int64 revision = 3; uint64 raft_term = 4; }
message KeyValue { bytes key = 1; int64 create_revision = 2; int64 mod_revision = 3; int64 version = 4; bytes value = 5; int64 lease = 6 [jstype = JS_STRING]; }
enum SortOrder { NONE = 0; ASCEND = 1; DESCEND = 2; }
enum SortTarget { KEY = 0; VERSION = 1; CREATE = 2; MOD = 3; VALUE = 4; }
message RangeRequest {
  bytes key = 1; bytes range_end = 2; int64 limit = 3; int64 revision = 4; SortOrder sort_order = 5; SortTarget sort_target = 6; bool serializable = 7;
  bool keys_only = 8; bool count_only = 9; int64 min_mod_revision = 10; int64 max_mod_revision = 11; int64 min_create_revision = 12;
  int64 max_create_revision = 13;
}
message RangeResponse { ResponseHeader header = 1; repeated KeyValue kvs = 2; bool more = 3; int64 count = 4; }
message PutRequest { bytes key = 1; bytes value = 2; int64 lease = 3 [jstype = JS_STRING]; bool prev_kv = 4; bool ignore_value = 5; bool ignore_lease = 6; }
message PutResponse { ResponseHeader header = 1; KeyValue prev_kv = 2; }
message DeleteRangeRequest { bytes key = 1; bytes range_end = 2; bool prev_kv = 3; }
message DeleteRangeResponse { ResponseHeader header = 1; int64 deleted = 2; repeated KeyValue prev_kvs = 3; }
message RequestOp {
  RangeRequest request_range = 1; PutRequest request_put = 2; DeleteRangeRequest request_delete_range = 3; TxnRequest request_txn = 4;
}
message ResponseOp { RangeResponse response_range = 1; PutResponse response_put = 2; DeleteRangeResponse response_delete_range = 3; TxnResponse response_txn = 4; }
enum CompareResult { EQUAL = 0; GREATER = 1; LESS = 2; NOT_EQUAL = 3; }
enum CompareTarget { VERSION = 0; CREATE = 1; MOD = 2; VALUE = 3; LEASE = 4; }
message Compare {
  CompareResult result = 1; CompareTarget target = 2; bytes key = 3;
  int64 version = 4; int64 create_revision = 5; int64 mod_revision = 6; bytes value = 7; int64 lease = 8 [jstype = JS_STRING]; bytes range_end = 64;
}
message TxnRequest { repeated Compare compare = 1; repeated RequestOp success = 2; repeated RequestOp failure = 3; }
message TxnResponse { ResponseHeader header = 1; bool succeeded = 2; repeated ResponseOp responses = 3; }
message CompactionRequest { int64 revision = 1; bool physical = 2; }
message CompactionResponse { ResponseHeader header = 1; }

enum EventType { PUT = 0; DELETE = 1; }
message Event { EventType type = 1; KeyValue kv = 2; KeyValue prev_kv = 3; }
message WatchRequest { WatchCreateRequest create_request = 1; WatchCancelRequest cancel_request = 2; WatchProgressRequest progress_request = 3; }
message WatchCreateRequest {
  bytes key = 1; bytes range_end = 2; int64 start_revision = 3; bool progress_notify = 4; repeated FilterType filters = 5; bool prev_kv = 6;
  int64 watch_id = 7; bool fragment = 8;
}
enum FilterType { NOPUT = 0; NODELETE = 1; }
message WatchCancelRequest { int64 watch_id = 1; }
message WatchProgressRequest {}
message WatchResponse {
  ResponseHeader header = 1; int64 watch_id = 2; bool created = 3; bool canceled = 4; int64 compact_revision = 5; string cancel_reason = 6;
  bool fragment = 7; repeated Event events = 11;
}

message LeaseGrantRequest { int64 ttl = 1; int64 id = 2 [jstype = JS_STRING]; }
message LeaseGrantResponse { ResponseHeader header = 1; int64 id = 2 [jstype = JS_STRING]; int64 ttl = 3; string error = 4; }
message LeaseRevokeRequest { int64 id = 1 [jstype = JS_STRING]; }
message LeaseRevokeResponse { ResponseHeader header = 1; }
message LeaseKeepAliveRequest { int64 id = 1 [jstype = JS_STRING]; }
message LeaseKeepAliveResponse { ResponseHeader header = 1; int64 id = 2 [jstype = JS_STRING]; int64 ttl = 3; }

message LeaseTimeToLiveRequest { int64 id = 1 [jstype = JS_STRING]; bool keys = 2; }
message LeaseTimeToLiveResponse {
  ResponseHeader header = 1; int64 id = 2 [jstype = JS_STRING]; int64 ttl = 3; int64 granted_ttl = 4; repeated bytes keys = 5;
}
message LeaseLeasesRequest {}
message LeaseStatus { int64 id = 1 [jstype = JS_STRING]; }
message LeaseLeasesResponse { ResponseHeader header = 1; repeated LeaseStatus leases = 2; }

enum AlarmType { NOALARM = 0; NOSPACE = 1; CORRUPT = 2; }
enum AlarmAction { GET = 0; ACTIVATE = 1; DEACTIVATE = 2; }
message AlarmRequest { AlarmAction action = 1; uint64 member_id = 2; AlarmType alarm = 3; }
message AlarmMember { uint64 member_id = 1; AlarmType alarm = 2; }
message AlarmResponse { ResponseHeader header = 1; repeated AlarmMember alarms = 2; }
message Member { uint64 id = 1 [jstype = JS_STRING]; string name = 2; repeated string peer_urls = 3; repeated string client_urls = 4; bool is_learner = 5; }
message MemberAddRequest { repeated string peer_urls = 1; bool is_learner = 2; }
message MemberAddResponse { ResponseHeader header = 1; Member member = 2; repeated Member members = 3; }
message MemberRequest { uint64 id = 1 [jstype = JS_STRING]; }
message MemberListRequest { bool linearizable = 1; }
message MemberListResponse { ResponseHeader header = 1; repeated Member members = 2; }
message AuthStatusRequest {}
message AuthStatusResponse { ResponseHeader header = 1; bool enabled = 2; uint64 auth_revision = 3; }
message StatusRequest {}
message StatusResponse {
  ResponseHeader header = 1; string version = 2; int64 db_size = 3; uint64 leader = 4; uint64 raft_index = 5; uint64 raft_term = 6;
  uint64 raft_applied_index = 7; repeated string errors = 8; int64 db_size_in_use = 9; bool is_learner = 10; string storage_version = 11;
  int64 db_size_quota = 12;
}
message DefragmentRequest {}
message DefragmentResponse { ResponseHeader header = 1; }
message MoveLeaderRequest { uint64 target_id = 1 [jstype = JS_STRING]; }
message MoveLeaderResponse { ResponseHeader header = 1; }
message HashRequest {}
message HashResponse { ResponseHeader header = 1; uint32 hash = 2; }
message HashKVRequest { int64 revision = 1; }
message HashKVResponse { ResponseHeader header = 1; uint32 hash = 2; int64 compact_revision = 3; int64 hash_revision = 4; }
message SnapshotRequest {}
message SnapshotResponse { ResponseHeader header = 1; uint64 remaining_bytes = 2; bytes blob = 3; string version = 4; }
message AuthenticateRequest { string name = 1; string password = 2; }
message AuthenticateResponse { ResponseHeader header = 1; string token = 2; }
message AuthResponse { ResponseHeader header = 1; }
message AuthNamesResponse { ResponseHeader header = 1; repeated string names = 2; }
message UserOptions { bool no_password = 1; }
message User { bytes name = 1; bytes password = 2; repeated string roles = 3; UserOptions options = 4; }
enum PermissionType { READ = 0; WRITE = 1; READWRITE = 2; }
message Permission { PermissionType perm_type = 1; bytes key = 2; bytes range_end = 3; }
message Role { bytes name = 1; repeated Permission key_permission = 2; }
message AuthUserRequest { string name = 1; }
message AuthUserAddRequest { string name = 1; string password = 2; UserOptions options = 3; }
message AuthUserChangePasswordRequest { string name = 1; string password = 2; }
message AuthUserRoleRequest { string name = 1; string role = 2; }
message AuthRoleRequest { string name = 1; }
message AuthRoleGetResponse { ResponseHeader header = 1; repeated Permission perm = 2; }
message AuthRoleGrantPermissionRequest { string name = 1; Permission perm = 2; }
message AuthRoleRevokePermissionRequest { string name = 1; bytes key = 2; bytes range_end = 3; }
`
