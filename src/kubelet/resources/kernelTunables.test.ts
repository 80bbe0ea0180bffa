import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkKernelTunables } from './kernelTunables.ts'

const right: Readonly<Record<string, string>> = {
  'vm/overcommit_memory': '1\n',
  'vm/panic_on_oom': '0\n',
  'kernel/panic': '10\n',
  'kernel/panic_on_oops': '1\n',
  'kernel/keys/root_maxkeys': '1000000\n',
  'kernel/keys/root_maxbytes': '25000000\n',
}

test('KUB-24 protectKernelDefaults accepts a kernel that is set up, and names every setting that is not as it should be', async () => {
  await checkKernelTunables(async (name) => right[name] ?? '')
  const wrong = { ...right, 'vm/overcommit_memory': '0\n', 'kernel/panic': '0\n' }
  await assert.rejects(
    checkKernelTunables(async (name) => wrong[name as keyof typeof wrong] ?? ''),
    /^Error: invalid kernel flag: vm\/overcommit_memory, expected value: 1, actual value: 0; invalid kernel flag: kernel\/panic, expected value: 10, actual value: 0: set them/,
  )
})
