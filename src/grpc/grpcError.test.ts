import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GrpcError, rpcErrorText } from './grpcError.ts'

test('KUB-02 a failed call has the message of the other side, and in Go’s words its status too, once', () => {
  const error = new GrpcError('DEADLINE_EXCEEDED', 'too late')
  error.isUnsent = true
  const said = 'rpc error: code = DeadlineExceeded desc = too late'
  assert.deepEqual([error.message, error.grpcStatus, rpcErrorText(error)], ['too late', 'DeadlineExceeded', said])
  const again = error.inGoWords()
  assert.deepEqual([again.message, again.code, again.isUnsent, again.cause, rpcErrorText(again)], [said, 'DEADLINE_EXCEEDED', true, error, said])
})
