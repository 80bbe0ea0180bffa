/** Last words of containers, and what becomes of pods whose containers end. Upstream: test/e2e/common/node/runtime.go. */
import assert from 'node:assert/strict'
import type { Container } from '#api/gen/types/core.v1'
import { type BehaviourGroup, table } from '../behaviour.ts'
import { isReady } from '../context.ts'

const messages: readonly {
  readonly name: string
  readonly script: string
  readonly container: Partial<Container>
  readonly phase: 'Succeeded' | 'Failed'
  readonly message: string | undefined
}[] = [
  {
    name: 'empty on success with log fallback',
    script: 'echo of the log; exit 0',
    container: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    phase: 'Succeeded',
    message: undefined,
  },
  {
    name: 'from file on success',
    script: 'echo -n of the file > /dev/termination-log; echo of the log; exit 0',
    container: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    phase: 'Succeeded',
    message: 'of the file',
  },
  {
    name: 'from log on error',
    script: 'echo -n of the log; exit 1',
    container: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    phase: 'Failed',
    message: 'of the log',
  },
  {
    name: 'custom path as non-root',
    script: 'echo -n of the file > /dev/termination-custom-log',
    container: { terminationMessagePath: '/dev/termination-custom-log', securityContext: { runAsUser: 10_000 } },
    phase: 'Succeeded',
    message: 'of the file',
  },
]

/** Fails at first, then runs on (Always) or ends well; the volume remembers how often it ran. */
const twice = (then: string) => `f=/runs/count; n=$(cat $f 2>/dev/null || echo 0); echo $((n + 1)) > $f; if [ $n -lt 1 ]; then exit 1; fi; ${then}`

const policies = [
  { restartPolicy: 'Always', script: twice('sleep 600'), phase: 'Running', restarts: 1, ready: true },
  { restartPolicy: 'OnFailure', script: twice('exit 0'), phase: 'Succeeded', restarts: 1, ready: false },
  { restartPolicy: 'Never', script: twice('exit 0'), phase: 'Failed', restarts: 0, ready: false },
] as const

export const termination: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Termination message & restart policy',
  rows: ['KUB-05', 'KUB-09'],
  behaviours: [
    ...table(messages, ({ name, script, container, phase, message }) => ({
      name,
      run: async ({ runPod }) => {
        const { status } = await runPod({ script, container }, phase)
        assert.equal(status?.containerStatuses?.[0]?.state?.terminated?.message, message)
      },
    })),
    {
      name: 'phase and restart counts for the three policies',
      run: async ({ createPod, waitForPod }) => {
        await Promise.all(
          policies.map(async ({ restartPolicy, script, phase, restarts, ready }) => {
            const container = { volumeMounts: [{ name: 'runs', mountPath: '/runs' }] }
            const pod = await createPod({ script, container, spec: { restartPolicy, volumes: [{ name: 'runs', emptyDir: {} }] } })
            const name = pod.metadata.name ?? ''
            const { status } = await waitForPod(name, `is ${phase} after ${restarts} restarts`, (seen) => {
              const restartCount = seen.status?.containerStatuses?.[0]?.restartCount
              return seen.status?.phase === phase && restartCount === restarts && isReady(seen) === ready
            })
            const { state } = status?.containerStatuses?.[0] ?? {}
            assert.deepEqual(Object.keys(state ?? {}), [phase === 'Running' ? 'running' : 'terminated'])
          }),
        )
      },
    },
  ],
}
