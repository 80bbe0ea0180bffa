/** What a container runs: its image's command and arguments, or the pod's. Upstream: test/e2e/common/node/containers.go. */
import assert from 'node:assert/strict'
import { type BehaviourGroup, table } from '../behaviour.ts'

// The image's own entry is a shell: a shell without input ends at once and in silence.
const rows = [
  { name: 'image defaults', container: {}, output: '' },
  { name: 'args override', container: { args: ['sh', '-c', 'echo arguments'] }, output: 'arguments' },
  { name: 'command override', container: { command: ['echo', 'command'] }, output: 'command' },
  { name: 'both override', container: { command: ['echo', 'command'], args: ['and', 'arguments'] }, output: 'command and arguments' },
]

export const entrypoint: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Entrypoint',
  rows: ['KUB-03'],
  behaviours: table(rows, ({ name, container, output }) => ({
    name,
    run: async ({ outputOf }) => assert.equal(await outputOf({ container }), output),
  })),
}
