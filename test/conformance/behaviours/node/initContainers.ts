/** Init containers run in order, before everything else, and decide whether anything else runs. Upstream: test/e2e/common/node/init_container.go. */
import assert from 'node:assert/strict'
import type { Container } from '#api/gen/types/core.v1'
import type { BehaviourGroup } from '../behaviour.ts'
import { busybox } from '../context.ts'

const run = (name: string, script: string): Container => ({ name, image: busybox, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script] })

export const initContainers: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Init containers',
  rows: ['KUB-03'],
  behaviours: [
    {
      name: 'run on RestartNever',
      run: async ({ runPod }) => {
        const { status } = await runPod({ script: 'exit 0', spec: { initContainers: [run('one', 'exit 0'), run('two', 'exit 0')] } })
        const [one, two] = status?.initContainerStatuses ?? []
        assert.equal(one?.state?.terminated?.exitCode, 0)
        assert.equal(two?.state?.terminated?.exitCode, 0)
        assert.ok((one.state.terminated.finishedAt ?? '') <= (two.state.terminated.startedAt ?? ''))
        assert.ok(status?.conditions?.some(({ type, status }) => type === 'Initialized' && status === 'True'))
      },
    },
    {
      name: 'run on RestartAlways',
      run: async ({ readyPod }) => {
        const initContainers = [run('one', 'exit 0'), run('two', 'exit 0')]
        const { status } = await readyPod({ script: 'sleep 600', spec: { restartPolicy: 'Always', initContainers } })
        assert.deepEqual(
          status?.initContainerStatuses?.map(({ ready, state }) => [ready, state?.terminated?.reason]),
          [
            [true, 'Completed'],
            [true, 'Completed'],
          ],
        )
        assert.ok(status?.containerStatuses?.[0]?.state?.running)
      },
    },
    {
      name: 'failure on RestartNever fails pod',
      run: async ({ runPod }) => {
        const { status } = await runPod({ script: 'exit 0', spec: { initContainers: [run('one', 'exit 0'), run('two', 'exit 1')] } }, 'Failed')
        assert.equal(status?.initContainerStatuses?.[1]?.state?.terminated?.exitCode, 1)
        assert.ok(status?.containerStatuses?.[0]?.state?.waiting, 'the app never starts')
        const initialized = status?.conditions?.find(({ type }) => type === 'Initialized')
        assert.equal(initialized?.status, 'False')
        assert.equal(initialized?.reason, 'ContainersNotInitialized')
      },
    },
    {
      name: 'failure on RestartAlways blocks app',
      run: async ({ createPod, waitForPod }) => {
        const initContainers = [run('one', 'exit 1'), run('two', 'exit 0')]
        const created = await createPod({ script: 'sleep 600', spec: { restartPolicy: 'Always', initContainers } })
        const { status } = await waitForPod(
          created.metadata.name ?? '',
          'has restarted its first init container three times',
          (pod) => (pod.status?.initContainerStatuses?.[0]?.restartCount ?? 0) >= 3,
        )
        assert.equal(status?.phase, 'Pending')
        assert.ok(status?.initContainerStatuses?.[1]?.state?.waiting, 'the second waits for the first')
        assert.ok(status?.containerStatuses?.[0]?.state?.waiting, 'the app waits for both')
      },
    },
  ],
}
