/** Kernel settings of a pod's own namespaces. Upstream: test/e2e/common/node/sysctl.go. */
import assert from 'node:assert/strict'
import type { BehaviourGroup } from '../behaviour.ts'

export const sysctls: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Sysctls',
  rows: ['KUB-19'],
  behaviours: [
    {
      name: 'kernel.shm_rmid_forced applied',
      run: async ({ outputOf }) => {
        const spec = { securityContext: { sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] } }
        assert.equal(await outputOf({ script: 'cat /proc/sys/kernel/shm_rmid_forced', spec }), '1')
      },
    },
    {
      name: 'invalid rejected',
      run: async ({ createPod }) => {
        const names = ['foo-', 'kernel.shmmax', 'safe-and-unsafe', 'bar..']
        const spec = { securityContext: { sysctls: names.map((name) => ({ name, value: '100000000' })) } }
        await assert.rejects(createPod({ script: 'exit 0', spec }), (error: Error) => {
          for (const name of ['foo-', 'bar..']) assert.ok(error.message.includes(`Invalid value: "${name}"`), error.message)
          assert.ok(!error.message.includes('"kernel.shmmax"') && !error.message.includes('"safe-and-unsafe"'), error.message)
          return true
        })
      },
    },
  ],
}
