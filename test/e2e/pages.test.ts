/** The commands of docs/learn and docs/migrate that need no real node, run in the order of the pages. They print what the pages show. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { runPage } from '../support/consolePage.ts'
import { pageEnvironment, removeClusters, withoutNewestKubectl } from '../support/pageEnvironment.ts'
import { obstacleToCluster } from './support/localCluster.ts'

const skip = withoutNewestKubectl || obstacleToCluster(false)
const options = { skip, timeout: 240_000 }
const docs = path.resolve(import.meta.dirname, '../../docs')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-pages-'))
const env = pageEnvironment(directory)

after(async () => {
  if (!skip) await removeClusters(env)
  fs.rmSync(directory, { recursive: true, force: true })
})

const run = (page: string) => runPage(path.join(docs, page), directory, env)

test('LRN-01 the start of the chapters makes a cluster', options, () => run('learn/README.md'))
test('LRN-01 LRN-03 the chapter about an apply traces it and explains a refusal', options, () => run('learn/apply.md'))
test('LRN-02 the chapter about the store reads revisions and refuses a stale write', options, () => run('learn/store.md'))
test('LRN-02 the chapter about watches reads a stream from a revision', options, () => run('learn/watches.md'))
test('LRN-05 the chapter about controllers makes differences that controllers remove', options, () => run('learn/controllers.md'))
test('LRN-04 the chapter about scheduling shows what each node is rejected for', options, () => run('learn/scheduling.md'))
test('X2 the cluster of the chapters is deleted, and the landing page makes one of its own', options, async () => {
  await removeClusters(env)
  await run('README.md')
})
test('X2 the guide from envtest runs as it stands', options, () => run('migrate/from-envtest.md'))
test('X2 the guide from KWOK runs as it stands', options, () => run('migrate/from-kwok.md'))
test('X2 the guide from k3s runs as it stands', options, () => run('migrate/from-k3s.md'))
