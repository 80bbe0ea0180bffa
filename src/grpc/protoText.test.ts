import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseProto } from './protoText.ts'

test('messages, enums, maps and streams', () => {
  const text = `package a.b;
    enum Mode { OFF = 0; ON = 1; }
    message Thing { repeated int64 group_ids = 1; map<string, Other> by_name = 2; Mode mode = 3; }
    message Empty {}
    service Things { rpc Watch(stream Empty) returns (stream Thing); }`
  assert.deepEqual(parseProto(text), {
    nested: {
      a: {
        nested: {
          b: {
            nested: {
              Mode: { values: { OFF: 0, ON: 1 } },
              Thing: {
                fields: {
                  groupIds: { type: 'int64', id: 1, rule: 'repeated' },
                  byName: { keyType: 'string', type: 'Other', id: 2 },
                  mode: { type: 'Mode', id: 3 },
                },
              },
              Empty: { fields: {} },
              Things: { methods: { Watch: { requestType: 'Empty', responseType: 'Thing', requestStream: true, responseStream: true } } },
            },
          },
        },
      },
    },
  })
})

test('what is not understood is refused', () => {
  assert.throws(() => parseProto('message A { oneof x = 1; string }'), /not a field/)
})
