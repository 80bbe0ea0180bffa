/** What a call that must fail was refused with. */
import assert from 'node:assert/strict'
import { StatusError } from '#api/machinery/status'

/** @throws AssertionError when the call succeeds, or fails with anything but a Status. */
export async function refused(call: Promise<unknown>): Promise<StatusError> {
  const error = await call.then(
    () => assert.fail('the call was not refused'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof StatusError, String(error))
  return error
}
