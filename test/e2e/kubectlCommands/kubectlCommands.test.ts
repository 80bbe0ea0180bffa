/**
 * Every command of kubectl against whole clusters: one of simulated nodes, and one with containers for what has to reach into them. The
 * last test holds the list of families against what kubectl says it can do, so that no command is forgotten.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { LocalCluster, obstacleToCluster } from '../support/localCluster.ts'
import { access } from './access.ts'
import { applying } from './applying.ts'
import { changing } from './changing.ts'
import { client } from './client.ts'
import { creating } from './creating.ts'
import { deleting } from './deleting.ts'
import { describing } from './describing.ts'
import { nodes } from './nodes.ts'
import { reading } from './reading.ts'
import { rollouts } from './rollouts.ts'
import { commandsOf, testFamily } from './steps.ts'
import { streams } from './streams.ts'

const families = [creating, reading, describing, changing, applying, rollouts, nodes, access, client, deleting, streams]
const skip = obstacleToCluster(false)
const skipReal = obstacleToCluster(true)
const clusters: { simulated?: LocalCluster; real?: LocalCluster } = {}

before(async () => {
  if (!skip) clusters.simulated = await LocalCluster.start('e2e-commands', ['--runtime', 'simulated', '--nodes', '3'])
  if (!skipReal) clusters.real = await LocalCluster.start('e2e-streams', ['--nodes', '1'])
})

after(async () => {
  await clusters.simulated?.delete()
  await clusters.real?.delete()
})

/** Said at every level, because what is inside would else run side by side as well. */
const inTurn = { concurrency: 1 }

/** The families of each cluster one after the other, the two clusters side by side. */
describe('kubectl', { concurrency: true }, () => {
  for (const cluster of ['simulated', 'real'] as const) {
    describe(cluster, inTurn, () => {
      for (const family of families.filter(({ real = false }) => real === (cluster === 'real'))) {
        testFamily(family, () => {
          const running = clusters[cluster]
          assert.ok(running, `the ${cluster} cluster runs`)
          return running
        })
      }
    })
  }
})

/** Words of kubectl's own that no server has a part in. */
const withoutServer = new Set(['help', 'kuberc'])

test('no command of kubectl is left out', { skip }, () => {
  const help = execFileSync('kubectl', ['--help'], { encoding: 'utf8' })
  const known = [...help.matchAll(/^ {2}([a-z][a-z-]+) {2,}\S/gm)].map((match) => match[1] ?? '')
  assert.ok(known.length >= 40, `kubectl names ${known.length} commands`)
  const used = new Set(families.flatMap(commandsOf))
  assert.deepEqual(
    known.filter((command) => !used.has(command) && !withoutServer.has(command)),
    [],
  )
})
