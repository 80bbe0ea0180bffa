/** get in all its forms, watching included, explain, api-resources, api-versions, cluster-info, events, version and top. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { LocalCluster } from '../support/localCluster.ts'
import { type Custom, type Family, fails, says, servedRelease } from './steps.ts'

const pod = (name: string, app: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app } },
  spec: { containers: [{ name: 'main', image: `image-${app}` }] },
})

const boats = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.reading.example' },
  spec: {
    group: 'reading.example',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', shortNames: ['bt'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: '.spec.sails', statusReplicasPath: '.status.sails' } },
        additionalPrinterColumns: [{ name: 'Sails', type: 'integer', jsonPath: '.spec.sails' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { sails: { type: 'integer', minimum: 1, description: 'How many sails.' } } },
              status: { type: 'object', properties: { sails: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
}

/** Watches, makes a change, and waits until the output shows it. */
function watching(name: string, line: readonly string[], change: readonly string[], want: RegExp, since = 0): Custom {
  const run = async (cluster: LocalCluster, namespace: string) => {
    const running = cluster.follow(['-n', namespace, ...line])
    try {
      await running.until(/\n/)
      await cluster.must(['-n', namespace, ...change])
      await running.until(want)
    } finally {
      running.end()
    }
  }
  return { name, commands: ['get'], since, run }
}

const chunks: Custom = {
  name: 'get --chunk-size asks page by page',
  commands: ['get'],
  run: async (cluster, namespace) => {
    const { stderr, stdout } = await cluster.kubectl(['-n', namespace, 'get', 'pods', '--chunk-size=1', '-o', 'name', '-v=6'])
    assert.equal(stdout, 'pod/one\npod/three\npod/two\n')
    const pages = stderr.match(/\/pods\?(\S*&)?limit=1\b/g) ?? []
    assert.ok(pages.length >= 3, stderr)
  },
}

const dumped: Custom = {
  name: 'cluster-info dump --output-directory writes files',
  commands: ['cluster-info'],
  run: async (cluster) => {
    const dir = path.join(cluster.dir, 'dump')
    await cluster.must(['cluster-info', 'dump', '--namespaces=reading', '--output-directory', dir])
    const pods = JSON.parse(await fs.readFile(path.join(dir, 'reading/pods.json'), 'utf8'))
    assert.deepEqual(pods.items.map((item: { metadata: { name: string } }) => item.metadata.name).sort(), ['one', 'three', 'two'])
    assert.equal(JSON.parse(await fs.readFile(path.join(dir, 'nodes.json'), 'utf8')).items.length, 3)
  },
}

export const reading: Family = {
  name: 'reading',
  steps: [
    says('apply -f -', /pod\/one created/, { input: [pod('one', 'a'), pod('two', 'a'), pod('three', 'b'), boats] }),
    says('wait --for=condition=Ready pod --all --timeout=30s', /pod\/two condition met/),
    says('get pods', [/^NAME +READY +STATUS +RESTARTS +AGE\none +1\/1 +Running +0 /, /\nthree .*\ntwo /]),
    says(
      'get pods -o wide',
      /NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\none .* 10\.244\.\S+ +e2e-commands-sim-\d +<none> +<none>/,
    ),
    says('get pods -o name', 'pod/one\npod/three\npod/two'),
    says('get pods --no-headers --sort-by=.spec.containers[0].image', /^(one|two) [^\n]*\n(one|two) [^\n]*\nthree /),
    says('get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image', 'NAME    IMAGE\none     image-a\nthree   image-b\ntwo     image-a'),
    says(`get pods -o go-template='{{range .items}}{{.metadata.name}} {{end}}'`, 'one three two'),
    says(`get pods -o jsonpath='{.items[?(@.metadata.labels.app=="b")].metadata.name}'`, 'three'),
    says('get pod one -o yaml', [/^apiVersion: v1\nkind: Pod\n/, /\n {4}image: image-a\n|\n {2}- image: image-a\n/, /\n {2}phase: Running\n/]),
    says('get pod one -o json', /"kind": "Pod"/),
    says('get pod one -o json --show-managed-fields', /"managedFields": \[/, { since: 21 }),
    says('get pods -A --field-selector=metadata.namespace=reading -o name', 'pod/one\npod/three\npod/two'),
    says('get pods -l app=a -o name', 'pod/one\npod/two'),
    says(`get pods -l 'app in (b,c),app!=a,!missing' -o name`, 'pod/three'),
    says('get pods --field-selector=metadata.name=two -o name', 'pod/two'),
    fails('get pods --field-selector=spec.color=red', /field label not supported: spec\.color/),
    fails(`get pods -l '!!'`, /unable to parse requirement|found '!', expected: identifier/),
    says('get pods -L app --show-labels', /NAME .* APP +LABELS\none .* a +app=a/),
    says('get pod/one pod/two -o name', 'pod/one\npod/two'),
    fails('get pod nobody', 'Error from server (NotFound): pods "nobody" not found'),
    says('get pod nobody --ignore-not-found', ''),
    fails('get nonsense', `error: the server doesn't have a resource type "nonsense"`),
    says('get secrets', '', { err: 'No resources found in reading namespace.' }),
    says('get all', /NAME +READY +STATUS +RESTARTS +AGE\npod\/one /),
    says('get --raw /readyz', 'ok'),
    says('get --raw /api/v1/namespaces/reading/pods?limit=1', /^\{"kind":"PodList","apiVersion":"v1","metadata":\{.*"continue":"/),
    says('get namespaces reading', /NAME +STATUS +AGE\nreading +Active /),
    says('get componentstatuses', /NAME +STATUS +MESSAGE +ERROR *\ncontroller-manager +Healthy +ok *\netcd-0 +Healthy +ok *\nscheduler +Healthy +ok/, {
      err: /Warning: v1 ComponentStatus is deprecated in v1\.19\+/,
    }),
    chunks,
    watching('get -w shows a change', ['get', 'pod', 'one', '-w'], ['label', 'pod', 'one', 'seen=1'], /\none [^\n]*\n(.|\n)*one /),
    watching(
      'get -w --output-watch-events names the kinds of events',
      ['get', 'pods', '-w', '--output-watch-events'],
      ['label', 'pod', 'one', 'seen=2', '--overwrite'],
      /EVENT +NAME +READY[^\n]*\nADDED +one (.|\n)*MODIFIED +one /,
    ),

    says('explain pod.spec.containers.imagePullPolicy', [
      /KIND: +Pod\nVERSION: +v1/,
      /FIELD: +imagePullPolicy <string>/,
      /Image pull policy\. One of Always, Never,?/,
    ]),
    says('explain deployment.spec.strategy --recursive', [/KIND: +Deployment/, /rollingUpdate\t<\w+>/, /maxSurge\t<\w+>/, /type\t<string>/]),
    says('explain deployment', /GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n/, { since: 27 }),
    says('explain hpa --api-version=autoscaling/v1', /VERSION: +(autoscaling\/)?v1\n/),
    says('explain pod.spec.nodeName --output=plaintext-openapiv2', /FIELD: +nodeName <string>/, { since: 27 }),
    fails('explain pod.spec.nonsense', /field "nonsense" does not exist/),
    fails('explain nonsense', /(the server doesn't have a resource type "nonsense")|(couldn't find resource)/),
    says('explain boat.spec', [/KIND: +Boat/, /sails\t<integer>\s+How many sails\./], { until: true }),
    says('explain boat.spec --output=plaintext-openapiv2', [/VERSION: +reading\.example\/v1/, /sails\t<integer>\s+How many sails\./], {
      until: true,
      since: 27,
    }),
    says('explain boat --recursive', [/ownerReferences\t<\[\](Object|OwnerReference)>/, / {2,}sails\t<integer>/]),

    says('apply -f -', 'boat.reading.example/arca created', {
      input: '{"apiVersion":"reading.example/v1","kind":"Boat","metadata":{"name":"arca"},"spec":{"sails":2}}',
    }),
    says('get bt', 'NAME   SAILS\narca   2'),
    says('get boats arca -o name', 'boat.reading.example/arca'),
    says('describe boat arca', /Name: +arca\n(.|\n)*Spec:\n +Sails: +2\n/),

    says('api-resources --api-group=apps', [/NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND/, /deployments +deploy +apps\/v1 +true +Deployment/]),
    says('api-resources --namespaced=false --verbs=list -o name', [/^nodes$/m, /^customresourcedefinitions\.apiextensions\.k8s\.io$/m]),
    says(
      'api-resources -o wide',
      /configmaps +cm .* create,delete,deletecollection,get,list,patch,update,watch|configmaps +cm .*\[create delete deletecollection get list patch update watch\]/,
    ),
    says('api-resources --api-group=reading.example', /boats +bt +reading\.example\/v1 +true +Boat/),
    says('api-resources --categories=all -o name', /^pods\nreplicationcontrollers\nservices\n(.|\n)*jobs\.batch/, { since: 24 }),
    says('api-versions', /^admissionregistration\.k8s\.io\/v1$(.|\n)*^reading\.example\/v1$(.|\n)*^v1$/m),

    says('cluster-info', /Kubernetes control plane.* is running at .*https:\/\/127\.0\.0\.1:\d+/),
    says('cluster-info dump --namespaces=reading', /"kind": "NodeList"(.|\n)*"kind": "PodList"/),
    dumped,
    says('events --for pod/one', [/^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n/, /Normal +Scheduled +Pod\/one +Successfully assigned reading\/one to /], {
      since: 26,
    }),
    says('events --types=Warning', '', { err: 'No events found in reading namespace.', since: 26 }),
    says('get events', /LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n(.|\n)*Normal +Started +pod\/one /),
    says('version', new RegExp(`^Server Version: ${servedRelease}\\b`, 'm'), { since: 28 }),
    says('version', new RegExp(`^Server Version: version\\.Info\\{.*GitVersion:"${servedRelease}\\b`, 'm'), { before: 28 }),
    says('version -o json', new RegExp(`"gitVersion": "${servedRelease}\\b`)),
    says('top node', [/^NAME +CPU\(cores\) +CPU\S+ +MEMORY\(bytes\)/, /^e2e-commands-\S+ +\d+m +\d+% +\d+Mi +\d+%/m], { until: true }),
    says('top pod', [/^NAME +CPU\(cores\) +MEMORY\(bytes\) *\n/, /^one +1m +10Mi/m, /^two +/m], { until: true }),
    says('top pod one --containers', /^POD +NAME +CPU\(cores\) +MEMORY\(bytes\) *\none +main +1m +10Mi/),
    says('top pod -l app=a --sort-by=memory --sum', /^NAME .*\n(one|two) .*\n(one|two) .*\n +_+ +_+ *\n +\d+m +20Mi/),
    says('top pod -A --no-headers', /^reading +one +1m +10Mi/m),
    says('get pods.metrics.k8s.io one', /^NAME +CPU +MEMORY +WINDOW\none +\d+n +10Mi +\d\S*s/),
    says(
      'get --raw /apis/metrics.k8s.io/v1beta1/nodes',
      /^\{"kind":"NodeMetricsList","apiVersion":"metrics\.k8s\.io\/v1beta1","metadata":\{\},"items":\[\{"metadata":/,
    ),
    fails('get pods.metrics.k8s.io -w', /watch is not supported on resources of kind "pods\.metrics\.k8s\.io"/),
    says('explain pods.containers.usage --api-version=metrics.k8s.io/v1beta1', /FIELD: usage <map\[string\]Quantity>/, { since: 28 }),
  ],
}
