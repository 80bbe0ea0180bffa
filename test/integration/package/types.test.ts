/**
 * The types of the published package under each supported compiler and module resolution: the page's operator compiles, as an ES module and as
 * CommonJS, and what does not fit the types is refused.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type InstalledPackage, installPackage } from '../../support/packedPackage.ts'

const root = path.resolve(import.meta.dirname, '../../..')
/** The oldest that docs/client.md names, the last of 5 and 6, and the newest. */
const compilers = ['5.5', '5.9', '6.0', '7.0']

let project: InstalledPackage
before(() => {
  project = installPackage({ withTools: true })
})
after(() => project.remove())

const page = fs.readFileSync(path.join(root, 'docs/client.md'), 'utf8')
const operator = /```ts operator\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
const reconcileOnly = `
import { configMaps, type Connection, stopSignal } from 'skiff-kubernetes/client'
import { defineController, runControllers } from 'skiff-kubernetes/controller'
import type { SchedulerPlugin } from 'skiff-kubernetes/scheduler'
import { startCluster } from 'skiff-kubernetes/testing'

async function reconcile(): Promise<void> {}
const named = defineController({ name: 'named', for: configMaps, reconcile })
const inPlace = defineController({ name: 'in-place', for: configMaps, reconcile: async ({ object }): Promise<void> => console.log(object.data) })
export const plugin: SchedulerPlugin = { name: 'Nothing' }
export async function run(connection: Connection): Promise<void> {
  const cluster = await startCluster({ nodes: 1 })
  await runControllers(connection, [named, inPlace], {}, stopSignal())
  await cluster.close()
}
`

interface Place {
  readonly module: string
  readonly moduleResolution: string
  /** The endings decide between ES module and CommonJS. */
  readonly files: Readonly<Record<string, string>>
}

const nodenext: Place = {
  module: 'nodenext',
  moduleResolution: 'nodenext',
  files: { 'operator.mts': operator, 'a.mts': reconcileOnly, 'b.cts': reconcileOnly },
}
const places: readonly Place[] = [
  nodenext,
  { module: 'node16', moduleResolution: 'node16', files: nodenext.files },
  { module: 'esnext', moduleResolution: 'bundler', files: { 'operator.ts': operator, 'a.ts': reconcileOnly } },
]

async function compile(compiler: string, { module, moduleResolution, files }: Place): Promise<string> {
  const folder = `${compiler}-${moduleResolution}`
  const shared = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'esnext.disposable'], types: ['node'], skipLibCheck: false }
  for (const [name, content] of Object.entries(files)) project.write(`${folder}/${name}`, content)
  project.write(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: { ...shared, module, moduleResolution }, files: Object.keys(files) }))
  const tsc = path.join(project.folder, `node_modules/typescript-${compiler}/bin/tsc`)
  try {
    return (await promisify(execFile)(process.execPath, [tsc, '-p', path.join(project.folder, folder)])).stdout
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

for (const compiler of compilers) {
  test(`CGO-06 the published types work with TypeScript ${compiler} under node16, nodenext and bundler`, { timeout: 300_000 }, async () => {
    for (const place of places) assert.equal(await compile(compiler, place), '', place.moduleResolution)
    const wrong = operator.replace('object.spec\n', 'object.specification\n')
    assert.match(await compile(compiler, { ...nodenext, files: { 'operator.mts': wrong } }), /'specification' does not exist/)
  })
}
