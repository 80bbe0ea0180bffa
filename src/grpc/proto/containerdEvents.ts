/**
 * containerd's event stream (L1): enough to learn which container has ended. An event's value travels as the bytes of its own
 * message, which is the same as that message itself. Upstream: containerd api/services/events/v1, api/events/task.proto (1.6).
 */
export const containerdEventsProto = `
package containerd.services.events.v1;
service Events {
  rpc Subscribe(SubscribeRequest) returns (stream Envelope);
}
message SubscribeRequest { repeated string filters = 1; }
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message TaskDelete { string container_id = 1; }
message Any { string type_url = 1; TaskDelete value = 2; }
message Envelope { Timestamp timestamp = 1; string namespace = 2; string topic = 3; Any event = 4; }
`
