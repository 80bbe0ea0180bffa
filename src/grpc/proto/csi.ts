/**
 * The Container Storage Interface (L1): what kubelet and sidecars call a storage driver by. Nested types are flat, with the name of the message around them
 * in front; members of a oneof are plain members, of which a message holds one. Specification: container-storage-interface/spec v1.12.
 */
export const csiProto = `
package csi.v1;
service Identity {
  rpc GetPluginInfo(GetPluginInfoRequest) returns (GetPluginInfoResponse);
  rpc GetPluginCapabilities(GetPluginCapabilitiesRequest) returns (GetPluginCapabilitiesResponse);
  rpc Probe(ProbeRequest) returns (ProbeResponse);
}
service Controller {
  rpc CreateVolume(CreateVolumeRequest) returns (CreateVolumeResponse);
  rpc DeleteVolume(DeleteVolumeRequest) returns (DeleteVolumeResponse);
  rpc ControllerPublishVolume(ControllerPublishVolumeRequest) returns (ControllerPublishVolumeResponse);
  rpc ControllerUnpublishVolume(ControllerUnpublishVolumeRequest) returns (ControllerUnpublishVolumeResponse);
  rpc ValidateVolumeCapabilities(ValidateVolumeCapabilitiesRequest) returns (ValidateVolumeCapabilitiesResponse);
  rpc ListVolumes(ListVolumesRequest) returns (ListVolumesResponse);
  rpc GetCapacity(GetCapacityRequest) returns (GetCapacityResponse);
  rpc ControllerGetCapabilities(ControllerGetCapabilitiesRequest) returns (ControllerGetCapabilitiesResponse);
  rpc CreateSnapshot(CreateSnapshotRequest) returns (CreateSnapshotResponse);
  rpc DeleteSnapshot(DeleteSnapshotRequest) returns (DeleteSnapshotResponse);
  rpc ListSnapshots(ListSnapshotsRequest) returns (ListSnapshotsResponse);
  rpc GetSnapshot(GetSnapshotRequest) returns (GetSnapshotResponse);
  rpc ControllerExpandVolume(ControllerExpandVolumeRequest) returns (ControllerExpandVolumeResponse);
  rpc ControllerGetVolume(ControllerGetVolumeRequest) returns (ControllerGetVolumeResponse);
  rpc ControllerModifyVolume(ControllerModifyVolumeRequest) returns (ControllerModifyVolumeResponse);
}
service GroupController {
  rpc GroupControllerGetCapabilities(GroupControllerGetCapabilitiesRequest) returns (GroupControllerGetCapabilitiesResponse);
  rpc CreateVolumeGroupSnapshot(CreateVolumeGroupSnapshotRequest) returns (CreateVolumeGroupSnapshotResponse);
  rpc DeleteVolumeGroupSnapshot(DeleteVolumeGroupSnapshotRequest) returns (DeleteVolumeGroupSnapshotResponse);
  rpc GetVolumeGroupSnapshot(GetVolumeGroupSnapshotRequest) returns (GetVolumeGroupSnapshotResponse);
}
service Node {
  rpc NodeStageVolume(NodeStageVolumeRequest) returns (NodeStageVolumeResponse);
  rpc NodeUnstageVolume(NodeUnstageVolumeRequest) returns (NodeUnstageVolumeResponse);
  rpc NodePublishVolume(NodePublishVolumeRequest) returns (NodePublishVolumeResponse);
  rpc NodeUnpublishVolume(NodeUnpublishVolumeRequest) returns (NodeUnpublishVolumeResponse);
  rpc NodeGetVolumeStats(NodeGetVolumeStatsRequest) returns (NodeGetVolumeStatsResponse);
  rpc NodeExpandVolume(NodeExpandVolumeRequest) returns (NodeExpandVolumeResponse);
  rpc NodeGetCapabilities(NodeGetCapabilitiesRequest) returns (NodeGetCapabilitiesResponse);
  rpc NodeGetInfo(NodeGetInfoRequest) returns (NodeGetInfoResponse);
}
message GetPluginInfoRequest {}
message GetPluginInfoResponse { string name = 1; string vendor_version = 2; map<string, string> manifest = 3; }
message GetPluginCapabilitiesRequest {}
message GetPluginCapabilitiesResponse { repeated PluginCapability capabilities = 1; }
message PluginCapability { PluginCapabilityService service = 1; PluginCapabilityVolumeExpansion volume_expansion = 2; }
message PluginCapabilityService { PluginCapabilityServiceType type = 1; }
enum PluginCapabilityServiceType {
  UNKNOWN = 0;
  CONTROLLER_SERVICE = 1;
  VOLUME_ACCESSIBILITY_CONSTRAINTS = 2;
  GROUP_CONTROLLER_SERVICE = 3;
  SNAPSHOT_METADATA_SERVICE = 4;
}
message PluginCapabilityVolumeExpansion { PluginCapabilityVolumeExpansionType type = 1; }
enum PluginCapabilityVolumeExpansionType { UNKNOWN = 0; ONLINE = 1; OFFLINE = 2; }
message ProbeRequest {}
message ProbeResponse { BoolValue ready = 1; }
message CreateVolumeRequest {
  string name = 1;
  CapacityRange capacity_range = 2;
  repeated VolumeCapability volume_capabilities = 3;
  map<string, string> parameters = 4;
  map<string, string> secrets = 5;
  VolumeContentSource volume_content_source = 6;
  TopologyRequirement accessibility_requirements = 7;
  map<string, string> mutable_parameters = 8;
}
message VolumeContentSource { VolumeContentSourceSnapshotSource snapshot = 1; VolumeContentSourceVolumeSource volume = 2; }
message VolumeContentSourceSnapshotSource { string snapshot_id = 1; }
message VolumeContentSourceVolumeSource { string volume_id = 1; }
message CreateVolumeResponse { Volume volume = 1; }
message VolumeCapability { VolumeCapabilityBlockVolume block = 1; VolumeCapabilityMountVolume mount = 2; VolumeCapabilityAccessMode access_mode = 3; }
message VolumeCapabilityBlockVolume {}
message VolumeCapabilityMountVolume { string fs_type = 1; repeated string mount_flags = 2; string volume_mount_group = 3; }
message VolumeCapabilityAccessMode { VolumeCapabilityAccessModeMode mode = 1; }
enum VolumeCapabilityAccessModeMode {
  UNKNOWN = 0;
  SINGLE_NODE_WRITER = 1;
  SINGLE_NODE_READER_ONLY = 2;
  MULTI_NODE_READER_ONLY = 3;
  MULTI_NODE_SINGLE_WRITER = 4;
  MULTI_NODE_MULTI_WRITER = 5;
  SINGLE_NODE_SINGLE_WRITER = 6;
  SINGLE_NODE_MULTI_WRITER = 7;
}
message CapacityRange { int64 required_bytes = 1; int64 limit_bytes = 2; }
message Volume {
  int64 capacity_bytes = 1;
  string volume_id = 2;
  map<string, string> volume_context = 3;
  VolumeContentSource content_source = 4;
  repeated Topology accessible_topology = 5;
}
message TopologyRequirement { repeated Topology requisite = 1; repeated Topology preferred = 2; }
message Topology { map<string, string> segments = 1; }
message DeleteVolumeRequest { string volume_id = 1; map<string, string> secrets = 2; }
message DeleteVolumeResponse {}
message ControllerPublishVolumeRequest {
  string volume_id = 1;
  string node_id = 2;
  VolumeCapability volume_capability = 3;
  bool readonly = 4;
  map<string, string> secrets = 5;
  map<string, string> volume_context = 6;
}
message ControllerPublishVolumeResponse { map<string, string> publish_context = 1; }
message ControllerUnpublishVolumeRequest { string volume_id = 1; string node_id = 2; map<string, string> secrets = 3; }
message ControllerUnpublishVolumeResponse {}
message ValidateVolumeCapabilitiesRequest {
  string volume_id = 1;
  map<string, string> volume_context = 2;
  repeated VolumeCapability volume_capabilities = 3;
  map<string, string> parameters = 4;
  map<string, string> secrets = 5;
  map<string, string> mutable_parameters = 6;
}
message ValidateVolumeCapabilitiesResponse { ValidateVolumeCapabilitiesResponseConfirmed confirmed = 1; string message = 2; }
message ValidateVolumeCapabilitiesResponseConfirmed {
  map<string, string> volume_context = 1;
  repeated VolumeCapability volume_capabilities = 2;
  map<string, string> parameters = 3;
  map<string, string> mutable_parameters = 4;
}
message ListVolumesRequest { int32 max_entries = 1; string starting_token = 2; }
message ListVolumesResponse { repeated ListVolumesResponseEntry entries = 1; string next_token = 2; }
message ListVolumesResponseVolumeStatus { repeated string published_node_ids = 1; VolumeCondition volume_condition = 2; }
message ListVolumesResponseEntry { Volume volume = 1; ListVolumesResponseVolumeStatus status = 2; }
message ControllerGetVolumeRequest { string volume_id = 1; }
message ControllerGetVolumeResponse { Volume volume = 1; ControllerGetVolumeResponseVolumeStatus status = 2; }
message ControllerGetVolumeResponseVolumeStatus { repeated string published_node_ids = 1; VolumeCondition volume_condition = 2; }
message ControllerModifyVolumeRequest { string volume_id = 1; map<string, string> secrets = 2; map<string, string> mutable_parameters = 3; }
message ControllerModifyVolumeResponse {}
message GetCapacityRequest { repeated VolumeCapability volume_capabilities = 1; map<string, string> parameters = 2; Topology accessible_topology = 3; }
message GetCapacityResponse { int64 available_capacity = 1; Int64Value maximum_volume_size = 2; Int64Value minimum_volume_size = 3; }
message ControllerGetCapabilitiesRequest {}
message ControllerGetCapabilitiesResponse { repeated ControllerServiceCapability capabilities = 1; }
message ControllerServiceCapability { ControllerServiceCapabilityRPC rpc = 1; }
message ControllerServiceCapabilityRPC { ControllerServiceCapabilityRPCType type = 1; }
enum ControllerServiceCapabilityRPCType {
  UNKNOWN = 0;
  CREATE_DELETE_VOLUME = 1;
  PUBLISH_UNPUBLISH_VOLUME = 2;
  LIST_VOLUMES = 3;
  GET_CAPACITY = 4;
  CREATE_DELETE_SNAPSHOT = 5;
  LIST_SNAPSHOTS = 6;
  CLONE_VOLUME = 7;
  PUBLISH_READONLY = 8;
  EXPAND_VOLUME = 9;
  LIST_VOLUMES_PUBLISHED_NODES = 10;
  VOLUME_CONDITION = 11;
  GET_VOLUME = 12;
  SINGLE_NODE_MULTI_WRITER = 13;
  MODIFY_VOLUME = 14;
  GET_SNAPSHOT = 15;
}
message CreateSnapshotRequest { string source_volume_id = 1; string name = 2; map<string, string> secrets = 3; map<string, string> parameters = 4; }
message CreateSnapshotResponse { Snapshot snapshot = 1; }
message Snapshot {
  int64 size_bytes = 1;
  string snapshot_id = 2;
  string source_volume_id = 3;
  Timestamp creation_time = 4;
  bool ready_to_use = 5;
  string group_snapshot_id = 6;
}
message DeleteSnapshotRequest { string snapshot_id = 1; map<string, string> secrets = 2; }
message DeleteSnapshotResponse {}
message ListSnapshotsRequest {
  int32 max_entries = 1;
  string starting_token = 2;
  string source_volume_id = 3;
  string snapshot_id = 4;
  map<string, string> secrets = 5;
}
message ListSnapshotsResponse { repeated ListSnapshotsResponseEntry entries = 1; string next_token = 2; }
message ListSnapshotsResponseEntry { Snapshot snapshot = 1; }
message GetSnapshotRequest { string snapshot_id = 1; map<string, string> secrets = 2; }
message GetSnapshotResponse { Snapshot snapshot = 1; }
message ControllerExpandVolumeRequest {
  string volume_id = 1;
  CapacityRange capacity_range = 2;
  map<string, string> secrets = 3;
  VolumeCapability volume_capability = 4;
}
message ControllerExpandVolumeResponse { int64 capacity_bytes = 1; bool node_expansion_required = 2; }
message NodeStageVolumeRequest {
  string volume_id = 1;
  map<string, string> publish_context = 2;
  string staging_target_path = 3;
  VolumeCapability volume_capability = 4;
  map<string, string> secrets = 5;
  map<string, string> volume_context = 6;
}
message NodeStageVolumeResponse {}
message NodeUnstageVolumeRequest { string volume_id = 1; string staging_target_path = 2; }
message NodeUnstageVolumeResponse {}
message NodePublishVolumeRequest {
  string volume_id = 1;
  map<string, string> publish_context = 2;
  string staging_target_path = 3;
  string target_path = 4;
  VolumeCapability volume_capability = 5;
  bool readonly = 6;
  map<string, string> secrets = 7;
  map<string, string> volume_context = 8;
}
message NodePublishVolumeResponse {}
message NodeUnpublishVolumeRequest { string volume_id = 1; string target_path = 2; }
message NodeUnpublishVolumeResponse {}
message NodeGetVolumeStatsRequest { string volume_id = 1; string volume_path = 2; string staging_target_path = 3; }
message NodeGetVolumeStatsResponse { repeated VolumeUsage usage = 1; VolumeCondition volume_condition = 2; }
message VolumeUsage { int64 available = 1; int64 total = 2; int64 used = 3; VolumeUsageUnit unit = 4; }
enum VolumeUsageUnit { UNKNOWN = 0; BYTES = 1; INODES = 2; }
message VolumeCondition { bool abnormal = 1; string message = 2; }
message NodeGetCapabilitiesRequest {}
message NodeGetCapabilitiesResponse { repeated NodeServiceCapability capabilities = 1; }
message NodeServiceCapability { NodeServiceCapabilityRPC rpc = 1; }
message NodeServiceCapabilityRPC { NodeServiceCapabilityRPCType type = 1; }
enum NodeServiceCapabilityRPCType {
  UNKNOWN = 0;
  STAGE_UNSTAGE_VOLUME = 1;
  GET_VOLUME_STATS = 2;
  EXPAND_VOLUME = 3;
  VOLUME_CONDITION = 4;
  SINGLE_NODE_MULTI_WRITER = 5;
  VOLUME_MOUNT_GROUP = 6;
}
message NodeGetInfoRequest {}
message NodeGetInfoResponse { string node_id = 1; int64 max_volumes_per_node = 2; Topology accessible_topology = 3; }
message NodeExpandVolumeRequest {
  string volume_id = 1;
  string volume_path = 2;
  CapacityRange capacity_range = 3;
  string staging_target_path = 4;
  VolumeCapability volume_capability = 5;
  map<string, string> secrets = 6;
}
message NodeExpandVolumeResponse { int64 capacity_bytes = 1; }
message GroupControllerGetCapabilitiesRequest {}
message GroupControllerGetCapabilitiesResponse { repeated GroupControllerServiceCapability capabilities = 1; }
message GroupControllerServiceCapability { GroupControllerServiceCapabilityRPC rpc = 1; }
message GroupControllerServiceCapabilityRPC { GroupControllerServiceCapabilityRPCType type = 1; }
enum GroupControllerServiceCapabilityRPCType { UNKNOWN = 0; CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT = 1; }
message CreateVolumeGroupSnapshotRequest {
  string name = 1;
  repeated string source_volume_ids = 2;
  map<string, string> secrets = 3;
  map<string, string> parameters = 4;
}
message CreateVolumeGroupSnapshotResponse { VolumeGroupSnapshot group_snapshot = 1; }
message VolumeGroupSnapshot { string group_snapshot_id = 1; repeated Snapshot snapshots = 2; Timestamp creation_time = 3; bool ready_to_use = 4; }
message DeleteVolumeGroupSnapshotRequest { string group_snapshot_id = 1; repeated string snapshot_ids = 2; map<string, string> secrets = 3; }
message DeleteVolumeGroupSnapshotResponse {}
message GetVolumeGroupSnapshotRequest { string group_snapshot_id = 1; repeated string snapshot_ids = 2; map<string, string> secrets = 3; }
message GetVolumeGroupSnapshotResponse { VolumeGroupSnapshot group_snapshot = 1; }
message BoolValue { bool value = 1; }
message Int64Value { int64 value = 1; }
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
`
