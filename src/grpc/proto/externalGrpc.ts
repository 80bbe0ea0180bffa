/**
 * The cloud provider that cluster-autoscaler asks over gRPC (L1). Options of groups are taken and given back as they are, so they are bytes here; prices are not
 * offered. Upstream: k8s.io/autoscaler cluster-autoscaler/cloudprovider/externalgrpc/protos/externalgrpc.proto (1.36).
 */
export const externalGrpcProto = `
package clusterautoscaler.cloudprovider.v1.externalgrpc;
service CloudProvider {
  rpc NodeGroups(NodeGroupsRequest) returns (NodeGroupsResponse);
  rpc NodeGroupForNode(NodeGroupForNodeRequest) returns (NodeGroupForNodeResponse);
  rpc GPULabel(GPULabelRequest) returns (GPULabelResponse);
  rpc GetAvailableGPUTypes(GetAvailableGPUTypesRequest) returns (GetAvailableGPUTypesResponse);
  rpc Cleanup(CleanupRequest) returns (CleanupResponse);
  rpc Refresh(RefreshRequest) returns (RefreshResponse);
  rpc NodeGroupTargetSize(NodeGroupTargetSizeRequest) returns (NodeGroupTargetSizeResponse);
  rpc NodeGroupIncreaseSize(NodeGroupIncreaseSizeRequest) returns (NodeGroupIncreaseSizeResponse);
  rpc NodeGroupDeleteNodes(NodeGroupDeleteNodesRequest) returns (NodeGroupDeleteNodesResponse);
  rpc NodeGroupDecreaseTargetSize(NodeGroupDecreaseTargetSizeRequest) returns (NodeGroupDecreaseTargetSizeResponse);
  rpc NodeGroupNodes(NodeGroupNodesRequest) returns (NodeGroupNodesResponse);
  rpc NodeGroupTemplateNodeInfo(NodeGroupTemplateNodeInfoRequest) returns (NodeGroupTemplateNodeInfoResponse);
  rpc NodeGroupGetOptions(NodeGroupAutoscalingOptionsRequest) returns (NodeGroupAutoscalingOptionsResponse);
}
message NodeGroup { string id = 1; int32 minSize = 2; int32 maxSize = 3; string debug = 4; }
message ExternalGrpcNode { string providerID = 1; string name = 2; map<string, string> labels = 3; map<string, string> annotations = 4; }
message NodeGroupsRequest {}
message NodeGroupsResponse { repeated NodeGroup nodeGroups = 1; }
message NodeGroupForNodeRequest { ExternalGrpcNode node = 1; }
message NodeGroupForNodeResponse { NodeGroup nodeGroup = 1; }
message GPULabelRequest {}
message GPULabelResponse { string label = 1; }
message GetAvailableGPUTypesRequest {}
message GetAvailableGPUTypesResponse { map<string, bytes> gpuTypes = 1; }
message CleanupRequest {}
message CleanupResponse {}
message RefreshRequest {}
message RefreshResponse {}
message NodeGroupTargetSizeRequest { string id = 1; }
message NodeGroupTargetSizeResponse { int32 targetSize = 1; }
message NodeGroupIncreaseSizeRequest { int32 delta = 1; string id = 2; }
message NodeGroupIncreaseSizeResponse {}
message NodeGroupDeleteNodesRequest { repeated ExternalGrpcNode nodes = 1; string id = 2; }
message NodeGroupDeleteNodesResponse {}
message NodeGroupDecreaseTargetSizeRequest { int32 delta = 1; string id = 2; }
message NodeGroupDecreaseTargetSizeResponse {}
message NodeGroupNodesRequest { string id = 1; }
message NodeGroupNodesResponse { repeated Instance instances = 1; }
message Instance { string id = 1; InstanceStatus status = 2; }
enum InstanceState { unspecified = 0; instanceRunning = 1; instanceCreating = 2; instanceDeleting = 3; }
message InstanceStatus { InstanceState instanceState = 1; InstanceErrorInfo errorInfo = 2; }
message InstanceErrorInfo { string errorCode = 1; string errorMessage = 2; int32 instanceErrorClass = 3; }
message NodeGroupTemplateNodeInfoRequest { string id = 1; }
message NodeGroupTemplateNodeInfoResponse { bytes nodeBytes = 2; }
message NodeGroupAutoscalingOptionsRequest { string id = 1; bytes defaults = 2; }
message NodeGroupAutoscalingOptionsResponse { bytes nodeGroupAutoscalingOptions = 1; }
`
export const externalGrpcService = 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider'
