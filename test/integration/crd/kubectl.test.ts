/** The real kubectl on custom resources: create, get with columns, explain, scale, api-resources, delete. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { sinceKubectl, type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'

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

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A table of times.
        properties:
          spec:
            type: object
            description: What is wanted.
            properties:
              cronSpec: {type: string, description: When it runs., pattern: '^\\S+$'}
              replicas: {type: integer, minimum: 0}
              image: {type: string}
          status: {type: object, properties: {replicas: {type: integer}, labelSelector: {type: string}}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.labelSelector}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec, description: When it runs.}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Image, type: string, jsonPath: .spec.image, priority: 1}
`
const crontab = `
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: mine}
spec: {cronSpec: '*/5', image: web, replicas: 2}
`

test('CRD-03 kubectl creates a definition and its resources, and gets them by every name', { skip }, async () => {
  assert.match(await kubectl.must('apply -f -', definition), /customresourcedefinition\.apiextensions\.k8s\.io\/crontabs\.stable\.example\.com created/)
  assert.match(await kubectl.must('wait --for=condition=Established crd/crontabs.stable.example.com --timeout=10s'), /condition met/)
  assert.match(await kubectl.must('apply -f -', crontab), /crontab\.stable\.example\.com\/mine created/)
  assert.match(await kubectl.must('apply -f -', crontab), /crontab\.stable\.example\.com\/mine unchanged/)
  assert.deepEqual((await kubectl.must('get ct')).trim().split(/\s+/), ['NAME', 'SPEC', 'REPLICAS', 'mine', '*/5', '2'])
  assert.deepEqual((await kubectl.must('get crontabs.stable.example.com -o wide --no-headers')).trim().split(/\s+/), ['mine', '*/5', '2', 'web'])
  assert.match(await kubectl.must('get all'), /crontab\.stable\.example\.com\/mine/)
  assert.match(await kubectl.must('api-resources --api-group=stable.example.com --no-headers'), /^crontabs +ct +stable\.example\.com\/v1 +true +CronTab/)
})

test('CRD-05 kubectl explains the fields of a custom resource', sinceKubectl(21), async () => {
  const spec = await kubectl.must('explain crontab.spec')
  assert.match(spec, /KIND: +CronTab/)
  assert.match(spec, /cronSpec\s+<string>\s+When it runs\./)
  assert.match(await kubectl.must('explain crontab'), /A table of times\./)
})

test('CRD-03 kubectl scales a custom resource', { skip }, async () => {
  assert.match(await kubectl.must('scale --replicas=5 crontab/mine'), /crontab\.stable\.example\.com\/mine scaled/)
  assert.equal(await kubectl.must('get ct mine -o jsonpath={.spec.replicas}'), '5')
})

test('CRD-01 kubectl shows what is wrong with a custom resource', { skip }, async () => {
  const { code, stderr } = await kubectl.run('apply -f - --validate=false', crontab.replace('replicas: 2', 'replicas: -1'))
  assert.equal(code, 1)
  assert.match(stderr, /The CronTab "mine" is invalid:\s+\* spec\.replicas: Invalid value: -1: spec\.replicas in body should be greater than or equal to 0/)
})

test('CRD-06 kubectl deletes the definition with all that came of it', { skip }, async () => {
  assert.match(await kubectl.must('patch ct mine --type=merge -p {"spec":{"image":"other"}}'), /patched/)
  assert.match(await kubectl.must('delete crd crontabs.stable.example.com --timeout=10s'), /deleted/)
  // kubectl may still know the name from before.
  assert.match((await kubectl.run('get ct')).stderr, /the server doesn't have a resource type "ct"|the server could not find the requested resource/)
})
