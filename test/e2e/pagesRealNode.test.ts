/** The commands of docs/learn and docs/migrate that need real nodes. They print what the pages show. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { runPage } from '../support/consolePage.ts'
import { pageEnvironment, removeClusters, withoutNewestKubectl } from '../support/pageEnvironment.ts'
import { obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = withoutNewestKubectl || obstacleToCluster(true)
const options = { skip, timeout: 240_000 }
const docs = path.resolve(import.meta.dirname, '../../docs')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-pages-'))
const env = pageEnvironment(directory)

before(async () => {
  if (skip) return
  const [image = ''] = await writeWebImage(directory, ['1.0'])
  fs.renameSync(image, path.join(directory, 'web-app.tar'))
})

after(async () => {
  if (!skip) await removeClusters(env)
  fs.rmSync(directory, { recursive: true, force: true })
})

const run = (page: string) => runPage(path.join(docs, page), directory, env)

test('LRN-06 LRN-07 the chapter about Services shows the rules of a node and the calls of its kubelet', options, () => run('learn/services.md'))
test('X12 the guide from kind runs as it stands', options, () => run('migrate/from-kind.md'))
