/**
 * Every list of moving parts is complete: what a folder exports of the list's type is in the list, and no two entries share a name.
 * Files are read as text, so that a file without an importer is found too.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { strategies } from '#api/kinds/index'
import { bootstrapClusterRoleBindings, bootstrapRoleBindings } from '#apiserver/authz/bootstrapPolicy/objects'
import { pipelineStages } from '#apiserver/pipeline/index'
import { RequestGroup } from '#apiserver/pipeline/requestGroup'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { commands } from '#cli/commands/index'
import { controllers } from '#controllers/index'
import { nodeViews } from '#kubelet/views/index'
import { volumePlugins } from '#kubelet/volumes/index'
import { objectsOf } from '#main/layouts/clusterRights'
import { localPathRights } from '#main/layouts/localPathStorage'
import { routeModes } from '#network/routes/index'
import { proxyModes } from '#proxy/modes/index'
import { defaultPlugins } from '#scheduler/plugins/index'
import { admissionPlugins } from '../../src/apiserver/admission/plugins/index.ts'

const source = path.resolve(import.meta.dirname, '../../src')

interface Texts {
  /** The file with the list. */
  readonly list: string
  /** The other files of the folder. */
  readonly parts: readonly string[]
}

/** Names that the parts export with one of these types and that the list does not mention outside its imports. */
function unlisted({ list, parts }: Texts, type: string): { found: number; missing: string[] } {
  const exported = parts.flatMap((text) => [
    ...text.matchAll(new RegExp(`^export const (\\w+)(?:: (?:${type})(?:<\\w+>)? = |(?:: [\\w<>]+)? = (?:${type})[<(])`, 'gm')),
    ...text.matchAll(new RegExp(`^export function (\\w+)\\(.*\\): (?:${type}) \\{$`, 'gm')),
  ])
  const body = list.replaceAll(/^import [^;]*? from '.*'$/gm, '')
  const names = exported.map(([, name = '']) => name)
  return { found: names.length, missing: names.filter((name) => !new RegExp(`\\b${name}\\b`).test(body)).sort() }
}

function textsOf(folder: string, listFile: string): Texts {
  const list = path.join(source, listFile)
  const files = fs
    .readdirSync(path.join(source, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(source, folder, name))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== list)
  return { list: fs.readFileSync(list, 'utf8'), parts: files.map((file) => fs.readFileSync(file, 'utf8')) }
}

const lists: { name: string; folder: string; list?: string; type: string; atLeast: number }[] = [
  { name: 'kinds', folder: 'api/kinds', type: 'defineKind', atLeast: 60 },
  { name: 'controllers', folder: 'controllers', type: 'ControllerDescriptor', atLeast: 20 },
  { name: 'scheduler plugins', folder: 'scheduler/plugins', type: 'definePlugin', atLeast: 10 },
  { name: 'admission plugins', folder: 'apiserver/admission/plugins', type: 'AdmissionPlugin', atLeast: 11 },
  { name: 'pipeline stages', folder: 'apiserver/pipeline', type: 'Stage', atLeast: 10 },
  { name: 'storages of kinds', folder: 'apiserver/kinds', type: 'KindStorages?', atLeast: 5 },
  { name: 'volumes', folder: 'kubelet/volumes', type: 'VolumePlugin', atLeast: 7 },
  { name: 'node views', folder: 'kubelet/views', type: 'NodeView', atLeast: 1 },
  { name: 'commands', folder: 'cli/commands', type: 'CliCommand', atLeast: 10 },
  { name: 'proxy modes', folder: 'proxy/modes', type: 'ProxyMode', atLeast: 1 },
  { name: 'route modes', folder: 'network/routes', type: 'RouteMode', atLeast: 1 },
  { name: 'authenticators', folder: 'apiserver/authn', list: 'apiserver/authn/authentication.ts', type: 'Authenticator|TokenAuthenticator', atLeast: 5 },
  { name: 'authorizers', folder: 'apiserver/authz', list: 'apiserver/authz/authorization.ts', type: 'Authorizer|RbacAuthorizer', atLeast: 8 },
  { name: 'DNS plugins', folder: 'dns/plugins', list: 'dns/servers.ts', type: 'DnsPlugin', atLeast: 2 },
]
for (const { name, folder, list = `${folder}/index.ts`, type, atLeast } of lists) {
  test(`the list of ${name} is complete`, () => {
    const { found, missing } = unlisted(textsOf(folder, list), type)
    assert.deepEqual(missing, [])
    assert.ok(found >= atLeast, `only ${found} were found: the search no longer sees them`)
  })
}

test('a part that is imported and not listed, or not imported at all, is named', () => {
  const list = "import { a } from './a.ts'\nimport { b } from './b.ts'\nexport const all: readonly Thing[] = [a]\n"
  const parts = [
    'export const a: Thing = {}',
    'export const b: Thing = {}',
    'export function c(x: { y: number }): Thing {',
    'export const d = Thing<X>({',
    'const e: Thing = {}',
  ]
  assert.deepEqual(unlisted({ list, parts }, 'Thing'), { found: 4, missing: ['b', 'c', 'd'] })
})

const clock = new VirtualClock()
const random = seededRandom(1)
const _reader = { get: () => undefined, list: () => [], onChange: () => () => {} }
const names: { name: string; entries: readonly string[] }[] = [
  { name: 'kinds', entries: strategies.map(({ group, kind }) => `${group}/${kind}`) },
  { name: 'controllers and their aliases', entries: controllers.flatMap(({ name, aliases }) => [name, ...aliases]) },
  { name: 'scheduler plugins', entries: defaultPlugins.map(({ definition }) => definition.name) },
  { name: 'admission plugins', entries: admissionPlugins.map(({ name }) => name) },
  {
    name: 'pipeline stages',
    entries: pipelineStages(
      {
        ...{ clock, random, log: noLog, metrics: noMetrics, authenticators: [], authorizers: [], shutdown: new AbortController().signal },
        ...{ requests: new RequestGroup(), watches: new RequestGroup() },
      },
      {
        ...{ requestTimeoutMs: 1, maxInFlight: { readOnly: 1, mutating: 1 }, shutdownSendRetryAfter: true, shutdownWatchTerminationGraceMs: 1 },
        ...{ hstsDirectives: ['max-age=1'], goawayChance: 0.01, corsAllowedOrigins: ['.*'] },
      },
    ).map((stage) => stage.name),
  },
  { name: 'volumes', entries: volumePlugins.map((plugin) => plugin.name) },
  { name: 'node views', entries: nodeViews.map(({ resource }) => resource) },
  { name: 'commands', entries: commands.map((command) => command.name) },
  { name: 'proxy modes', entries: proxyModes.map((mode) => mode.name) },
  { name: 'route modes', entries: routeModes.map((mode) => mode.name) },
]
for (const { name, entries } of names) {
  test(`${name}: no two share a name`, () => {
    assert.deepEqual(
      entries.filter((entry, i) => entries.indexOf(entry) !== i),
      [],
    )
    assert.ok(entries.length > 0 && entries.every((entry) => entry !== ''))
  })
}

test('every controller acts as a service account that the bootstrap policy, or the local cluster, gives rights', () => {
  const { binding } = objectsOf(localPathRights)
  const bound = new Set(
    [...bootstrapClusterRoleBindings({ AllAlpha: true, AllBeta: true }), ...bootstrapRoleBindings(), ...(binding ? [binding] : [])].flatMap(
      ({ subjects = [] }) => subjects.map(({ namespace, name }) => `${namespace}/${name}`),
    ),
  )
  assert.deepEqual(
    controllers.filter(({ serviceAccount, actsAsManager }) => !actsAsManager && !bound.has(`kube-system/${serviceAccount}`)).map(({ name }) => name),
    [],
  )
})

test('every store driver passes the conformance suite', () => {
  const folder = path.join(source, 'store/drivers')
  const entries = fs.readdirSync(folder, { withFileTypes: true })
  const local = entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map(({ name }) => path.join(folder, name))
    .filter((file) => /: (Promise<)?(Local)?Store\b/.test(fs.readFileSync(file, 'utf8')))
    .map((file) => file.replace(/\.ts$/, '.test.ts'))
  // A driver of several files is a client of another program, which its suite starts.
  const remote = entries.filter((entry) => entry.isDirectory()).map(({ name }) => path.resolve(source, `../test/integration/store/${name}Store.test.ts`))
  assert.ok(local.length >= 2 && remote.length >= 1)
  for (const suite of [...local, ...remote]) assert.match(fs.readFileSync(suite, 'utf8'), /^describeStore\(/m, suite)
  for (const suite of local) assert.doesNotMatch(fs.readFileSync(suite, 'utf8'), /isRemote/, `${suite}: a local store keeps the order of its callers`)
})
