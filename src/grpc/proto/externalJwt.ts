/**
 * The external signer of service account tokens, v1 (L1). The time is google.protobuf.Timestamp by its bytes.
 * Upstream: k8s.io/externaljwt/apis/v1/api.proto (v1.36).
 */
export const externalJwtProto = `
package v1;
service ExternalJWTSigner {
  rpc Sign(SignJWTRequest) returns (SignJWTResponse);
  rpc FetchKeys(FetchKeysRequest) returns (FetchKeysResponse);
  rpc Metadata(MetadataRequest) returns (MetadataResponse);
}
message SignJWTRequest { string claims = 1; }
message SignJWTResponse { string header = 1; string signature = 2; }
message FetchKeysRequest {}
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message FetchKeysResponse { repeated Key keys = 1; Timestamp data_timestamp = 2; int64 refresh_hint_seconds = 3; }
message Key { string key_id = 1; bytes key = 2; bool exclude_from_oidc_discovery = 3; }
message MetadataRequest {}
message MetadataResponse { int64 max_token_expiration_seconds = 1; }
`
