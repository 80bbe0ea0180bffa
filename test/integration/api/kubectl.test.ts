/** The real kubectl against the server: get, create, apply, patch, scale, label, delete, explain, api-resources. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { kubectlMinor, sinceKubectl, type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'

const skip = withoutKubectl
let api: TestApiServer
let kubectl: TestKubectl

before(async () => {
  api = await startTestApiServer()
  kubectl = testKubectl(await api.listen())
})
after(async () => {
  await api.close()
  kubectl.remove()
})

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "nginx:1", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

test('API-01 kubectl creates, reads, changes and deletes', { skip }, async () => {
  assert.equal(await kubectl.must('create namespace shop'), 'namespace/shop created\n')
  assert.equal(await kubectl.must('apply -n shop -f -', manifest), 'deployment.apps/web created\nservice/web created\n')
  assert.equal(await kubectl.must('apply -n shop -f -', manifest), 'deployment.apps/web unchanged\nservice/web unchanged\n')
  assert.equal(await kubectl.must('apply -n shop -f -', manifest.replace('nginx:1', 'nginx:2')), 'deployment.apps/web configured\nservice/web unchanged\n')
  assert.equal(await kubectl.must('get deploy web -n shop -o jsonpath={.spec.template.spec.containers[0].image}'), 'nginx:2')
  assert.equal(await kubectl.must('scale -n shop deploy/web --replicas=5'), 'deployment.apps/web scaled\n')
  assert.match(await kubectl.must('get deploy -n shop'), /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/5 +0 +0 +\d+s\n$/)
  assert.match(
    await kubectl.must('get svc -n shop'),
    /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nweb +ClusterIP +10\.96\.\d+\.\d+ +<none> +80\/TCP +\d+s\n$/,
  )
  assert.equal(await kubectl.must('create configmap m -n shop --from-literal=a=b'), 'configmap/m created\n')
  assert.equal(await kubectl.must('patch configmap m -n shop -p {"data":{"c":"d"}}'), 'configmap/m patched\n')
  assert.equal(await kubectl.must('label configmap m -n shop x=y'), 'configmap/m labeled\n')
  assert.match(await kubectl.must('get configmaps -n shop -l x=y'), /^NAME +DATA +AGE\nm +2 +\d+s\n$/)
  assert.match(await kubectl.must('describe configmap m -n shop'), /^Name: +m\nNamespace: +shop\n/)
  assert.match(await kubectl.must('delete configmap m -n shop'), /^configmap "m" deleted( from shop namespace)?\n$/)
  assert.equal((await kubectl.run('get configmap m -n shop')).stderr, 'Error from server (NotFound): configmaps "m" not found\n')
  assert.match(await kubectl.must('run p -n shop --image=nginx --dry-run=server -o name'), /^pod\/p\n$/)
})

test('API-11 kubectl applies on the server and names the conflict', { skip }, async () => {
  const map = (value: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ssa' }, data: { a: value } })
  assert.equal(await kubectl.must('apply --server-side -f -', map('1')), 'configmap/ssa serverside-applied\n')
  const conflict = await kubectl.run('apply --server-side --field-manager=other -f -', map('2'))
  assert.match(conflict.stderr, /^error: Apply failed with 1 conflict: conflict with "kubectl": \.data\.a\n/)
  assert.equal(await kubectl.must('apply --server-side --force-conflicts --field-manager=other -f -', map('2')), 'configmap/ssa serverside-applied\n')
})

test('API-13 kubectl shows what strict validation finds', sinceKubectl(25), async () => {
  const { code, stderr } = await kubectl.run('apply -f -', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"dataa":{}}')
  assert.equal(code, 1)
  assert.match(stderr, /strict decoding error: unknown field "dataa"/)
})

test('API-15 kubectl explains from the published schema', { skip }, async () => {
  const text = await kubectl.must('explain pod.spec.containers')
  // Before 1.27 it read OpenAPI v2, and before 1.25 it also validated by it, where the server does now.
  assert.match(text, kubectlMinor < 27 ? /RESOURCE: containers <\[\]Object>/ : /FIELD: containers <\[\]Container>/)
  assert.match(text, /\n {2,3}image\t<string>\n/)
  if (kubectlMinor >= 25) return
  const { stderr } = await kubectl.run('apply -f -', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"dataa":{}}')
  assert.match(stderr, /ValidationError\(ConfigMap\): unknown field "dataa" in io\.k8s\.api\.core\.v1\.ConfigMap/)
})

test('API-14 kubectl lists resources with short names, and finds kinds by them', { skip }, async () => {
  const lines = (await kubectl.must('api-resources --no-headers')).trimEnd().split('\n')
  // 68 resources, of which horizontalpodautoscalers counts once: kubectl lists preferred versions.
  assert.equal(lines.length, 67)
  assert.ok(lines.some((line) => /^deployments +deploy +apps\/v1 +true +Deployment$/.test(line)))
  assert.match(await kubectl.must('get ns,svc,cm -A -o name'), /namespace\/kube-system/)
  assert.match(await kubectl.must('get all -A -o name'), /service\/kubernetes/)
})
