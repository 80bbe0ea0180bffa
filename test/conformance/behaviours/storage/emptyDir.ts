/** Scratch space that lives as long as its pod, on disk and in memory. Upstream: test/e2e/common/storage/empty_dir.go. */
import assert from 'node:assert/strict'
import { type BehaviourGroup, table } from '../behaviour.ts'
import { busybox } from '../context.ts'

const media = [
  { medium: '', name: 'disk' },
  { medium: 'Memory', name: 'tmpfs' },
] as const

const users = [
  { name: 'root', uid: 0 },
  { name: 'non-root', uid: 1001 },
] as const

const modes = ['0644', '0666', '0777'] as const

const volumeMounts = [{ name: 'scratch', mountPath: '/scratch' }]
const volumes = (medium: string) => [{ name: 'scratch', emptyDir: medium ? { medium } : {} }]

const files = media.flatMap(({ medium, name: where }) =>
  users.flatMap(({ name: who, uid }) => modes.map((mode) => ({ name: `${who}, ${mode}, ${where}`, medium, uid, mode }))),
)

export const emptyDir: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'emptyDir',
  rows: ['STO-01'],
  behaviours: [
    ...table(files, ({ name, medium, uid, mode }) => ({
      name,
      run: async ({ outputOf }) => {
        const script = `cd /scratch && echo content > file && chmod ${mode} file && stat -c '%a %u' file && cat file`
        const container = { volumeMounts, securityContext: { runAsUser: uid } }
        assert.equal(await outputOf({ script, container, spec: { volumes: volumes(medium) } }), `${Number(mode)} ${uid}\ncontent`)
      },
    })),
    ...table(media, ({ medium, name }) => ({
      name: `${name === 'disk' ? 'default-medium' : 'tmpfs'} mode`,
      run: async ({ outputOf }) => {
        const script = "stat -c '%a' /scratch; awk '$2 == \"/scratch\" {print $3}' /proc/mounts"
        const [mode, filesystem] = (await outputOf({ script, container: { volumeMounts }, spec: { volumes: volumes(medium) } })).split('\n')
        // A tmpfs also has the sticky bit.
        assert.match(mode ?? '', /^1?777$/)
        assert.equal(filesystem === 'tmpfs', medium === 'Memory', filesystem)
      },
    })),
    {
      name: 'shared between containers',
      run: async ({ runPod, logs }) => {
        const container = (name: string, script: string) => ({ name, image: busybox, command: ['sh', '-c', script], volumeMounts })
        const containers = [
          container('writer', 'echo from-writer > /scratch/new && mv /scratch/new /scratch/file'),
          container('reader', 'until [ -f /scratch/file ]; do sleep 0.1; done; cat /scratch/file'),
        ]
        const pod = await runPod({ containers, spec: { volumes: volumes('') } })
        assert.equal(await logs(pod.metadata.name ?? '', 'reader'), 'from-writer')
      },
    },
  ],
}
