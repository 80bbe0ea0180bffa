import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GrpcError, type StatusName } from '#grpc/grpcError'
import type { StoreError } from '../../store.ts'
import { storeErrorOf } from './errors.ts'

const large = 'Received message larger than max (200 vs 100)'
const cases: { name: string; code: StatusName; message: string; isUnsent?: boolean; isWrite: boolean; want: string }[] = [
  { name: 'a lost answer of a write', code: 'UNAVAILABLE', message: 'lost', isWrite: true, want: 'unknownOutcome' },
  { name: 'a write that never left', code: 'UNAVAILABLE', message: 'lost', isUnsent: true, isWrite: true, want: 'unavailable' },
  { name: 'a write without a connection until its deadline', code: 'DEADLINE_EXCEEDED', message: '', isUnsent: true, isWrite: true, want: 'unavailable' },
  { name: 'a lost answer of a read', code: 'UNAVAILABLE', message: 'lost', isWrite: false, want: 'unavailable' },
  { name: 'a large answer of a write', code: 'RESOURCE_EXHAUSTED', message: large, isWrite: true, want: 'unknownOutcome' },
  { name: 'a large answer of a read', code: 'RESOURCE_EXHAUSTED', message: large, isWrite: false, want: `etcd's answer is too large: ${large}` },
  { name: 'a large request', code: 'RESOURCE_EXHAUSTED', message: 'grpc: received message larger than max (9 vs 8)', isWrite: true, want: 'tooLarge' },
]
for (const { name, code, message, isUnsent = false, isWrite, want } of cases) {
  test(`ETC-20 ${name} is ${want}`, () => {
    const error = storeErrorOf(Object.assign(new GrpcError(code, message), { isUnsent }), isWrite) as StoreError
    assert.equal(error.code ?? error.message, want)
  })
}
