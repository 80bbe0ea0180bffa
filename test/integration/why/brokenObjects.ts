/** Storage, networking, nodes, extensions: objects that wait for something else than pods. */
import { ecdsaRequest } from '#testing/testCertificateRequests'
import { type Broken, claimYaml, podYaml } from './broken.ts'

const serviceYaml = (spec: string, name = 'web') => `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {${spec}}
`
const classYaml = (name: string, more: string) => `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ${name}}
${more}
---`
const lateClass = classYaml('late-{ns}', 'provisioner: disk.example.com\nvolumeBindingMode: WaitForFirstConsumer')
const volumeYaml = (name: string, more = '') => `
apiVersion: v1
kind: PersistentVolume
metadata: {name: '${name}'}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/x}, persistentVolumeReclaimPolicy: Retain${more && `, ${more}`}}
`

const storage: readonly Broken[] = [
  {
    what: 'a claim without a class where none is the default',
    given: claimYaml('data'),
    ask: 'persistentvolumeclaims/data',
    cause: /^it names no StorageClass, and (there is none|none of these is the default: )/,
    evidence: /^spec\.storageClassName is absent$/,
    next: /^kubectl get storageclasses$/,
  },
  {
    what: 'a claim whose class does not exist',
    given: claimYaml('data', 'storageClassName: fast'),
    ask: 'persistentvolumeclaims/data',
    cause: /^its StorageClass fast does not exist$/,
    evidence: /^spec\.storageClassName fast$/,
    next: /^kubectl get storageclasses$/,
  },
  {
    what: 'a claim whose driver is not installed',
    given: `${classYaml('cloud', 'provisioner: disk.example.com')}${claimYaml('data', 'storageClassName: cloud')}`,
    ask: 'persistentvolumeclaims/data',
    cause: /^the provisioner disk\.example\.com has made no volume yet; no CSI driver of this name is installed$/,
    evidence: /^StorageClass cloud: provisioner disk\.example\.com$/,
    next: /^kubectl get csidrivers$/,
  },
  {
    what: 'a claim that waits for its first consumer',
    given: `${lateClass}${claimYaml('data', "storageClassName: 'late-{ns}'")}`,
    ask: 'persistentvolumeclaims/data',
    cause: /^it waits for its first consumer: no pod uses it$/,
    evidence: /WaitForFirstConsumer$/,
    next: /^kubectl describe pvc data/,
  },
  {
    what: 'a claim whose first consumer has no node',
    given: `${lateClass}${claimYaml('data', "storageClassName: 'late-{ns}'")}---${podYaml('app', { spec: 'nodeSelector: {disk: ssd}, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' })}`,
    ask: 'persistentvolumeclaims/data',
    cause: /^it waits until its pod app has a node$/,
    evidence: /WaitForFirstConsumer$/,
    next: /^skiff why pod\/app -n /,
  },
  {
    what: 'a claim that no PersistentVolume is large enough for',
    given: `${classYaml('static-{ns}', 'provisioner: kubernetes.io/no-provisioner')}${volumeYaml('small-{ns}', "storageClassName: 'static-{ns}'")}---${claimYaml('data', "storageClassName: 'static-{ns}'", '5Gi')}`,
    ask: 'persistentvolumeclaims/data',
    cause: /^no PersistentVolume of class static-\S+ fits: small-\S+ is smaller \(1Gi\) than 5Gi$/,
    evidence: /^StorageClass static-\S+: provisioner kubernetes\.io\/no-provisioner$/,
    next: /^kubectl get persistentvolumes$/,
  },
  {
    what: 'a claim whose access modes no PersistentVolume has',
    given: `${classYaml('static-{ns}', 'provisioner: kubernetes.io/no-provisioner')}${volumeYaml('single-{ns}', "storageClassName: 'static-{ns}'")}---${claimYaml('data', "storageClassName: 'static-{ns}'").replace('ReadWriteOnce', 'ReadWriteMany')}`,
    ask: 'persistentvolumeclaims/data',
    cause: /fits: single-\S+ has the access modes ReadWriteOnce, and not ReadWriteMany$/,
    evidence: /no-provisioner/,
    next: /^kubectl get persistentvolumes$/,
  },
  {
    what: 'a claim for a volume that does not exist',
    given: claimYaml('data', "storageClassName: '', volumeName: gone"),
    ask: 'persistentvolumeclaims/data',
    cause: /^it asks for the volume gone, which does not exist$/,
    evidence: /^spec\.volumeName gone$/,
    next: /^kubectl get persistentvolumes$/,
  },
  {
    what: 'a claim whose volume is deleted',
    given: claimYaml('data', "storageClassName: '', volumeName: gone").replace(
      'name: data}',
      "name: data, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}",
    ),
    ask: 'persistentvolumeclaims/data',
    cause: /^its volume gone does not exist any more/,
    evidence: /^status\.phase Lost/,
    next: /^kubectl get persistentvolume gone$/,
  },
  {
    what: 'a deleted claim that a pod uses',
    given: `${volumeYaml('used-{ns}')}---${claimYaml('data', "storageClassName: '', volumeName: 'used-{ns}'")}---${podYaml('app', { spec: 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' })}`,
    steps: [{ running: 'pods/app' }, { delete: 'persistentvolumeclaims/data' }],
    ask: 'persistentvolumeclaims/data',
    cause: /^pods use it: app; the claim goes after them$/,
    evidence: /finalizer kubernetes\.io\/pvc-protection$/,
    next: /^kubectl get pod app -n /,
  },
  {
    what: 'a volume that is kept after its claim',
    given: volumeYaml(
      'kept',
      "claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: '{ns}', name: old, uid: 11111111-1111-1111-1111-111111111111}",
    ),
    ask: 'persistentvolumes/kept',
    cause: /^its claim \S+\/old is deleted, and the policy Retain keeps the volume for that claim/,
    evidence: /^status\.phase Released, spec\.claimRef /,
    next: /^kubectl patch persistentvolume kept --type=json/,
  },
  {
    what: 'a volume that is reserved for a claim that does not ask for it',
    given: volumeYaml('reserved', "claimRef: {namespace: '{ns}', name: later}"),
    ask: 'persistentvolumes/reserved',
    cause: /^it is kept for the claim \S+\/later, which does not ask for it$/,
    evidence: /^spec\.claimRef \S+\/later$/,
    next: /^skiff why pvc\/later -n /,
  },
]

const labels = { app: 'web' }
const network: readonly Broken[] = [
  {
    what: 'a Service whose selector selects no pod, with the nearest pod',
    given: `${podYaml('api', { labels: { app: 'api' } })}---${podYaml('app', { labels: { app: 'webb' } })}---${serviceYaml('selector: {app: web}, ports: [{port: 80}]')}`,
    ask: 'services/web',
    cause: /^its selector selects no pod that runs: app=web; the nearest is app with app=webb$/,
    evidence: /^spec\.selector app=web$/,
    next: /^kubectl get pods --show-labels -n /,
  },
  {
    what: 'a Service whose pods are not ready',
    given: `${podYaml('app', { labels, annotations: { 'pull-error': 'denied' } }).replace('web:1', 'web:private')}---${serviceYaml('selector: {app: web}, ports: [{port: 80}]')}`,
    ask: 'services/web',
    cause: /^pod app: container c: image example\.com\/web:private cannot be pulled: .*denied/,
    evidence: /waiting/,
    next: /^kubectl describe pod app/,
  },
  {
    what: 'a Service whose targetPort is no name of a port',
    given: `${podYaml('app', { labels, container: 'ports: [{name: web, containerPort: 8080}]' })}---${serviceYaml('selector: {app: web}, ports: [{port: 80, targetPort: http}]')}`,
    ask: 'services/web',
    cause: /^its targetPort http is the name of no port of its pods; they have: web$/,
    evidence: /^spec\.ports targetPort http, pod app$/,
    next: /^kubectl edit service web/,
  },
  {
    what: 'a Service whose targetPort is no port that its pods declare',
    given: `${podYaml('app', { labels, container: 'ports: [{containerPort: 8080}]' })}---${serviceYaml('selector: {app: web}, ports: [{port: 80}]')}`,
    ask: 'services/web',
    cause: /^its targetPort 80 may lead nowhere: its pods declare 8080$/,
    evidence: /^spec\.ports targetPort 80, pod app$/,
    next: /^kubectl edit service web/,
  },
  {
    what: 'a Service without a selector and without endpoints',
    given: serviceYaml('ports: [{port: 80}]'),
    ask: 'services/web',
    cause: /^it has no selector, and no EndpointSlice has addresses for it$/,
    evidence: /kubernetes\.io\/service-name=web/,
    next: /^kubectl get endpointslices -l kubernetes\.io\/service-name=web/,
  },
  {
    what: 'a Service of a load balancer class that no controller serves',
    given: `${podYaml('app', { labels })}---${serviceYaml('type: LoadBalancer, loadBalancerClass: example.com/lb, selector: {app: web}, ports: [{port: 80}]')}`,
    ask: 'services/web',
    cause: /^no controller of load balancers of class example\.com\/lb has given it an address$/,
    evidence: /^status\.loadBalancer is empty$/,
    next: /^kubectl describe service web/,
  },
  ingress(
    'a class that does not exist',
    'ingressClassName: none, defaultBackend: {service: {name: web, port: {number: 80}}}',
    serviceYaml('type: ExternalName, externalName: example.com, ports: [{port: 80}]'),
    /^its IngressClass none does not exist$/,
    /^spec\.ingressClassName none$/,
    /^kubectl get ingressclasses$/,
  ),
  ingress(
    'a Service that does not exist',
    'ingressClassName: shared, defaultBackend: {service: {name: web, port: {number: 80}}}',
    '',
    /^its backend names Service web, which does not exist$/,
    /^spec\.rules, backend web:80$/,
    /^kubectl get services/,
  ),
  ingress(
    'a port that its Service has not',
    'ingressClassName: shared, defaultBackend: {service: {name: web, port: {number: 81}}}',
    serviceYaml('selector: {app: web}, ports: [{port: 80, name: http}]'),
    /^its backend names port 81 of Service web, which has: http \(80\)$/,
    /backend web:81$/,
    /^kubectl describe service web/,
  ),
  ingress(
    'a Service without endpoints',
    'ingressClassName: shared, defaultBackend: {service: {name: web, port: {number: 80}}}',
    serviceYaml('selector: {app: web}, ports: [{port: 80}]'),
    /^Service web: its selector selects no pod that runs: app=web$/,
    /^spec\.selector app=web$/,
    /^skiff why service\/web -n /,
  ),
  ingress(
    'a TLS Secret that does not exist',
    'ingressClassName: shared, tls: [{secretName: cert}], defaultBackend: {service: {name: web, port: {number: 80}}}',
    `${podYaml('app', { labels })}---${serviceYaml('selector: {app: web}, ports: [{port: 80}]')}`,
    /^its TLS Secret cert does not exist$/,
    /^spec\.tls, secretName cert$/,
    /^kubectl describe secret cert/,
  ),
  ingress(
    'a class whose controller does not run',
    'ingressClassName: shared, defaultBackend: {service: {name: web, port: {number: 80}}}',
    `${podYaml('app', { labels })}---${serviceYaml('selector: {app: web}, ports: [{port: 80}]')}`,
    /^the controller example\.com\/ingress of its class has given it no address/,
    /^status\.loadBalancer is empty$/,
    /^kubectl describe ingress front/,
  ),
  {
    what: 'a Gateway whose class does not exist',
    given: gatewayYaml('none'),
    ask: 'gateways.gateway.networking.k8s.io/front',
    cause: /^its GatewayClass none does not exist$/,
    evidence: /^spec\.gatewayClassName none$/,
    next: /^kubectl get gatewayclasses$/,
  },
  {
    what: 'a Gateway whose listener is refused',
    given: `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: shared}
spec: {controllerName: example.com/gateway}
---${gatewayYaml('shared')}`,
    steps: [
      {
        status: 'gateways.gateway.networking.k8s.io/front',
        body: {
          listeners: [
            { name: 'http', attachedRoutes: 0, supportedKinds: [], conditions: [condition('Programmed', 'False', 'PortUnavailable', 'port 80 is in use')] },
          ],
        },
      },
    ],
    ask: 'gateways.gateway.networking.k8s.io/front',
    cause: /^its listener http is not Programmed: port 80 is in use$/,
    evidence: /^status\.listeners\[http\], condition Programmed False \(PortUnavailable\)$/,
    next: /^kubectl describe gateway front/,
  },
  {
    what: 'an HTTPRoute whose Gateway does not exist',
    given: routeYaml(),
    ask: 'httproutes.gateway.networking.k8s.io/site',
    cause: /^its Gateway \S+\/front does not exist$/,
    evidence: /^spec\.parentRefs, Gateway \S+\/front$/,
    next: /^kubectl get gateways -A$/,
  },
  {
    what: 'a TLSRoute whose Gateway does not exist',
    given: routeYaml('TLSRoute', 'hostnames: [site.test], '),
    ask: 'tlsroutes.gateway.networking.k8s.io/site',
    cause: /^its Gateway \S+\/front does not exist$/,
    evidence: /^spec\.parentRefs, Gateway \S+\/front$/,
    next: /^kubectl get gateways -A$/,
  },
  {
    what: 'an HTTPRoute whose backend is not found',
    given: `${gatewayYaml('none')}---${routeYaml()}`,
    steps: [
      {
        status: 'httproutes.gateway.networking.k8s.io/site',
        body: {
          parents: [
            {
              parentRef: { name: 'front' },
              controllerName: 'example.com/gateway',
              conditions: [condition('ResolvedRefs', 'False', 'BackendNotFound', 'Service web does not exist')],
            },
          ],
        },
      },
    ],
    ask: 'httproutes.gateway.networking.k8s.io/site',
    cause: /^Gateway \S+\/front, ResolvedRefs: Service web does not exist$/,
    evidence: /^status\.parents, condition ResolvedRefs False \(BackendNotFound\)$/,
    next: /^kubectl describe httproute site/,
  },
]

const extensions: readonly Broken[] = [
  {
    what: 'a node whose kubelet is silent',
    given: '',
    ask: 'nodes/down',
    cause: /^its kubelet has reported nothing since \S+: the kubelet, the machine or the network between them is down$/,
    evidence: /^condition Ready Unknown \(NodeStatusUnknown\)$/,
    next: /^skiff status$/,
  },
  {
    what: 'a node that no kubelet has reported about',
    given: "\napiVersion: v1\nkind: Node\nmetadata: {name: 'empty'}\n",
    ask: 'nodes/empty',
    cause: /^no kubelet has reported its status yet/,
    evidence: /condition Ready/,
    next: /^kubectl describe node empty$/,
  },
  {
    what: 'a node that is cordoned',
    given: '',
    steps: [{ patch: 'nodes/n2', body: { spec: { unschedulable: true } } }],
    ask: 'nodes/n2',
    cause: /^it takes no new pods: it is cordoned$/,
    evidence: /^spec\.unschedulable true$/,
    next: /^kubectl uncordon n2$/,
  },
  {
    what: 'a CustomResourceDefinition with a name that another has',
    given: `${definitionYaml('Widget', 'widgets')}---${definitionYaml('Widget', 'others')}`,
    ask: 'customresourcedefinitions.apiextensions.k8s.io/others.example.com',
    cause: /^another resource of its group has one of its names: "\w+" is already in use/,
    evidence: /^condition NamesAccepted False/,
    next: /^kubectl describe customresourcedefinition others\.example\.com$/,
  },
  {
    what: 'a custom resource that its controller reports a fault of',
    given: 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n',
    steps: [
      {
        status: 'widgets.example.com/w',
        body: { conditions: [condition('Synced', 'True', 'Ok', ''), condition('Ready', 'False', 'NoPower', 'the battery is empty')] },
      },
    ],
    ask: 'widgets.example.com/w',
    cause: /^Ready is False: the battery is empty$/,
    evidence: /^condition Ready False \(NoPower\)$/,
    next: /^kubectl describe widget w/,
  },
  {
    what: 'a deleted custom resource with a finalizer',
    given: 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, finalizers: [example.com/drain]}\n',
    steps: [{ delete: 'widgets.example.com/w' }],
    ask: 'widgets.example.com/w',
    cause: /^the controller that owns the finalizer example\.com\/drain has not removed it: check that the controller of example\.com runs/,
    evidence: /^deletionTimestamp \S+, finalizer example\.com\/drain$/,
    next: /^kubectl get widget w -o yaml/,
  },
  {
    what: 'a deleted CustomResourceDefinition with a custom resource that stays',
    given: `${definitionYaml('Gadget', 'gadgets')}---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g, finalizers: [example.com/drain]}\n`,
    steps: [{ delete: 'customresourcedefinitions.apiextensions.k8s.io/gadgets.example.com' }],
    ask: 'customresourcedefinitions.apiextensions.k8s.io/gadgets.example.com',
    cause: /^its custom resources are deleted first/,
    evidence: /finalizer customresourcecleanup\.apiextensions\.k8s\.io$/,
    next: /^kubectl get gadgets\.example\.com -A$/,
  },
  {
    what: 'an APIService whose Service does not exist',
    given: `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.remote.example.com}
spec: {group: remote.example.com, version: v1, service: {namespace: '{ns}', name: api}, insecureSkipTLSVerify: true, groupPriorityMinimum: 100, versionPriority: 10}
`,
    ask: 'apiservices.apiregistration.k8s.io/v1.remote.example.com',
    cause: /^Service \S+\/api serves this group: which does not exist$/,
    evidence: /condition Available/,
    next: /^kubectl get services -n /,
  },
  {
    what: 'a webhook whose Service does not exist',
    given: webhookYaml('absent'),
    ask: 'validatingwebhookconfigurations.admissionregistration.k8s.io/absent',
    cause: /^webhook hook\.example\.com does not answer, so CREATE of configmaps are refused: its Service \S+\/hook does not exist$/,
    evidence: /^failurePolicy Fail, clientConfig\.service \S+\/hook$/,
    next: /^kubectl get services -n /,
  },
  {
    what: 'a webhook whose Service has no endpoints',
    given: `${serviceYaml('selector: {app: web}, ports: [{port: 443}]', 'hook')}---${webhookYaml('empty')}`,
    ask: 'validatingwebhookconfigurations.admissionregistration.k8s.io/empty',
    cause: /are refused: Service \S+\/hook: its selector selects no pod that runs: app=web$/,
    evidence: /clientConfig\.service/,
    next: /^skiff why service\/hook -n /,
  },
  {
    what: 'a certificate that no approver has approved',
    given: certificateYaml('pending'),
    ask: 'certificatesigningrequests.certificates.k8s.io/pending',
    cause: /^no approver has approved it; \S+ asks example\.com\/signer for it$/,
    evidence: /^no condition Approved or Denied$/,
    next: /^kubectl certificate approve pending$/,
  },
  {
    what: 'a certificate that is approved for a signer that no controller serves',
    given: certificateYaml('approved'),
    steps: [{ status: 'certificatesigningrequests.certificates.k8s.io/approved', body: { conditions: [condition('Approved', 'True', 'ByMe', 'fine')] } }],
    ask: 'certificatesigningrequests.certificates.k8s.io/approved',
    cause: /^it is approved, and the signer example\.com\/signer has not signed it/,
    evidence: /^condition Approved/,
    next: /^kubectl describe csr approved$/,
  },
  {
    what: 'a certificate that is denied',
    given: certificateYaml('denied'),
    steps: [{ status: 'certificatesigningrequests.certificates.k8s.io/denied', body: { conditions: [condition('Denied', 'True', 'Policy', 'not for you')] } }],
    ask: 'certificatesigningrequests.certificates.k8s.io/denied',
    cause: /^an approver has denied it: not for you$/,
    evidence: /^condition Denied True \(Policy\)$/,
    next: /^kubectl describe csr denied$/,
  },
  {
    what: 'a deleted ConfigMap with a finalizer',
    given: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, finalizers: [example.com/backup]}\n',
    steps: [{ delete: 'configmaps/kept' }],
    ask: 'configmaps/kept',
    cause: /^the controller that owns the finalizer example\.com\/backup has not removed it/,
    evidence: /finalizer example\.com\/backup$/,
    next: /^kubectl get configmap kept -o yaml/,
  },
]

export const brokenObjects: readonly Broken[] = [...storage, ...network, ...extensions]

function ingress(what: string, spec: string, more: string, cause: RegExp, evidence: RegExp, next: RegExp): Broken {
  const given = `apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: front}\nspec: {${spec}}\n${more && `---${more}`}`
  return { what: `an Ingress of ${what}`, given, ask: 'ingresses.networking.k8s.io/front', cause, evidence, next }
}

function condition(type: string, status: string, reason: string, message: string) {
  return { type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

function gatewayYaml(gatewayClass: string): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front}
spec: {gatewayClassName: ${gatewayClass}, listeners: [{name: http, port: 80, protocol: HTTP}]}
`
}

function routeYaml(kind = 'HTTPRoute', fields = ''): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ${kind}
metadata: {name: site}
spec: {${fields}parentRefs: [{name: front}], rules: [{backendRefs: [{name: web, port: 80}]}]}
`
}

function definitionYaml(kind: string, plural: string): string {
  return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${plural}.example.com}
spec:
  group: example.com
  names: {kind: ${kind}, plural: ${plural}}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
}

function webhookYaml(name: string): string {
  return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ${name}}
webhooks:
- name: hook.example.com
  clientConfig: {service: {namespace: '{ns}', name: hook}}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '{ns}'}}
  sideEffects: None
  admissionReviewVersions: [v1]
`
}

function certificateYaml(name: string): string {
  return `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: ${name}}
spec: {request: ${ecdsaRequest}, signerName: example.com/signer, usages: [client auth]}
`
}
