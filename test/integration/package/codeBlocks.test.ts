/**
 * The code of the pages, as a reader would use it: every block of TypeScript and JavaScript compiles under --strict against the packed package, and
 * runs; manifests are accepted by the API server; the flags of `skiff` in command lines exist.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'
import type { Unstructured } from '#api/machinery/meta'
import { parseYamlDocuments } from '#api/machinery/yaml'
import { isKubeadmFile } from '#cli/kubeadm/configFile'
import { readJoinConfiguration } from '#cli/kubeadm/joinConfiguration'
import { kubeadmUpValues } from '#cli/kubeadm/upFlags'
import { customResourceDefinitions, serviceAccounts } from '#client/builtIn'
import { createDiscovery } from '#client/discovery/discovery'
import { createDynamicClient, createRestMapper } from '#client/discovery/restMapper'
import { createMissingDefinitions } from '#csi/controllers/snapshotter/snapshotDefinitions'
import { readTracingConfiguration } from '#main/tracing/tracingConfiguration'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { type InstalledPackage, installPackage } from '../../support/packedPackage.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { until } from '../../support/until.ts'

const root = path.resolve(import.meta.dirname, '../../..')

interface Block {
  /** Page and number: `client.md 2`, `learn/store.md 1`. */
  readonly name: string
  readonly language: string
  /** After the language: how the block is run. */
  readonly use: string
  readonly code: string
}

const docs = fs.readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`)
const pages = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', ...docs]
const blocks: readonly Block[] = pages
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) =>
    [...fs.readFileSync(path.join(root, page), 'utf8').matchAll(/^```(\w+)(?: (\w+))?\n([\s\S]*?)^```/gm)].map(
      ([, language = '', use = '', code = ''], at) => ({
        name: `${page.replace(/^docs\//, '')} ${at + 1}`,
        language,
        use,
        code,
      }),
    ),
  )
/** Declarations of the reference are no programs: the compiler wrote them. */
const programs = blocks.filter(({ language, use }) => /^(ts|js)$/.test(language) && use !== 'signature')
const fileOf = ({ name, language, use }: Block) => `blocks/${name.replace(/\W/g, '-')}.${use === 'jest' ? 'c' : 'm'}${language}`

let project: InstalledPackage
let api: TestApiServer
before(async () => {
  project = installPackage({ withTools: true })
  api = await startTestApiServer()
  for (const program of programs) project.write(fileOf(program), program.code)
  const { url, ca, token } = await api.listen()
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'a', user: { token } }],
  }
  project.write('kubeconfig', JSON.stringify(config))
})
after(async () => {
  await api.close()
  project.remove()
})

test('X1 every code block of the pages compiles under --strict against the packed package', () => {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    allowJs: true,
    checkJs: true,
    module: 'nodenext',
    moduleDetection: 'force',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
  }
  // What a test runner declares belongs to its own types.
  const files = programs.filter(({ use }) => use !== 'jest').map(fileOf)
  assert.ok(files.length >= 7, files.join(', '))
  project.write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  const compile = () => execFileSync(process.execPath, [tsc, '-p', project.folder], { encoding: 'utf8', stdio: 'pipe' })
  assert.equal(compile(), '')
  project.write('blocks/wrong.mts', "import { pods } from 'skiff-kubernetes/client'\nconst text: number = pods.kind\nconsole.log(text)\n")
  project.write('tsconfig.json', JSON.stringify({ compilerOptions, files: [...files, 'blocks/wrong.mts'] }))
  assert.throws(compile, (error) => /wrong\.mts.*'string' is not assignable to type 'number'/.test((error as { stdout: string }).stdout))
})

for (const program of programs.filter(({ use }) => use !== 'jest' && use !== 'operator')) {
  test(`X1 ${program.name} runs against the packed package`, { timeout: 60_000 }, async () => {
    const stages = blocks.find(({ language, code }) => language === 'yaml' && code.includes('kind: Stage'))
    project.write('blocks/stages.yaml', stages?.code ?? '')
    const file = fileOf(program).replace(/\.\w+$/, '.run.mjs')
    project.write(file, transformSync(program.code, { loader: 'ts', target: 'node20', format: 'esm' }).code)
    const { PATH, TMPDIR } = process.env
    const env = { PATH, TMPDIR, HOME: project.folder, KUBECONFIG: path.join(project.folder, 'kubeconfig') }
    await promisify(execFile)(process.execPath, [path.join(project.folder, file)], { cwd: path.join(project.folder, 'blocks'), env })
  })
}

/** docs/pod-certificates.md and docs/store.md turn these on. */
const turnedOn = [
  '--feature-gates=ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true,StorageVersionMigrator=true',
  '--runtime-config=storagemigration.k8s.io/v1beta1=true',
]

test('X1 the API server accepts every manifest of the pages', async (t) => {
  const api = await startServerWithFlags(turnedOn)
  t.after(() => api.close())
  await api.client.of(serviceAccounts).create({ metadata: { namespace: 'default', name: 'default' } })
  await createMissingDefinitions(api.client, new AbortController().signal)
  await until('the definitions of snapshots are served', async () => {
    const { items } = await api.client.of(customResourceDefinitions).list()
    return items.every(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True'))
  })
  const client = createDynamicClient(api.client, createRestMapper(createDiscovery(api.client.transport)))
  const manifests = blocks
    .filter(({ language }) => language === 'yaml')
    .flatMap(({ name, code }) => parseYamlDocuments(code).map((object) => ({ name, object: object as Unstructured })))
  // Stages, component configurations and those of kubeadm are files, no objects of the API.
  const served = manifests.filter(
    ({ object }) =>
      object.kind !== undefined && !/^(kwok\.x-k8s\.io|(apiserver|kubescheduler)\.config\.k8s\.io|kubeadm\.k8s\.io)\//.test(object.apiVersion ?? ''),
  )
  assert.ok(served.length >= 4)
  for (const { name, object } of served) {
    const resource = await client.forKind(object.apiVersion ?? '', object.kind ?? '')
    const metadata = { namespace: 'default', ...object.metadata }
    const created = await resource.create({ ...object, metadata }, { dryRun: true, fieldValidation: 'Strict' })
    assert.equal(created.kind, object.kind, name)
  }
})

test('X1 the API server reads the tracing configurations on the pages', () => {
  const files = blocks.filter(({ language, code }) => language === 'yaml' && code.includes('apiserver.config.k8s.io'))
  assert.ok(files.length >= 1)
  for (const { code, name } of files) assert.ok(readTracingConfiguration(code).endpoint, name)
})

test('X1 skiff reads the files of kubeadm on the pages, every field of them', () => {
  const files = blocks.filter(({ language, code }) => language === 'yaml' && code.includes('kubeadm.k8s.io') && isKubeadmFile(parseYamlDocuments(code)))
  assert.ok(files.length >= 2)
  const noFlags = { 'kube-apiserver': new Set<string>(), 'kube-controller-manager': new Set<string>(), 'kube-scheduler': new Set<string>() }
  for (const { name, code } of files) {
    const report = { warnings: [] }
    if (code.includes('kind: JoinConfiguration')) readJoinConfiguration(code, report)
    else kubeadmUpValues(code, noFlags, report)
    assert.deepEqual(report.warnings, [], name)
  }
})

/** `skiff up --nodes 3 # comment` → up, with its flags; lines that end with a backslash continue. */
const commandLines = blocks
  .filter(({ language }) => /^(sh|console)$/.test(language))
  .flatMap(({ name, code }) =>
    [
      ...code
        .replaceAll('\\\n', ' ')
        .matchAll(/^(?:\$ )?(?:npx |bin\/)?skiff ((?:addon|debug|etcd|image|lab|net|nodegroup|nodes|server|simulate|snapshot|token) \w+|\w[\w-]*)([^#\n]*)/gm),
    ].map(([, command = '', rest = '']) => ({
      name,
      command,
      flags: [...rest.matchAll(/(?<=\s)--[a-z-]+/g)].map(([flag]) => flag),
    })),
  )

test('X1 the flags in command lines of the pages exist', { timeout: 120_000 }, async () => {
  assert.ok(commandLines.length >= 10)
  const bin = path.join(project.installed, 'bin/skiff')
  const help = new Map<string, string>()
  for (const command of new Set(commandLines.map((line) => line.command))) {
    help.set(command, (await promisify(execFile)(process.execPath, [bin, ...command.split(' '), '--help'], { maxBuffer: 2 ** 24 })).stdout)
  }
  const unknown = commandLines.flatMap(({ name, command, flags }) =>
    flags.filter((flag) => !help.get(command)?.includes(flag)).map((flag) => `${name}: skiff ${command} ${flag}`),
  )
  assert.deepEqual(unknown, [])
})
