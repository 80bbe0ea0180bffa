#!/usr/bin/env node
/**
 * Writes src/api/gen/facts.ts: the v1.36 API as one compact table (names, types, markers, protobuf numbers; never texts).
 * Arguments: the OpenAPI v2 document of the release, a folder k8s.io/… with the release's Go types, then folders with its generated.proto files.
 * The table's form is described in src/api/gen/README.md; src/api/schema/builtIn.ts and src/api/discovery/resources.ts read it.
 */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { findGoField, parseGoTypes } from './goTypes.mjs'
import { parseProtos } from './protos.mjs'

const [openApiFile, goFolder, ...protoFolders] = process.argv.slice(2)
if (!openApiFile || protoFolders.length === 0) {
  console.error('usage: generateFacts.mjs OPENAPI_JSON GO_FOLDER PROTO_FOLDER...')
  process.exit(2)
}
const { definitions, paths, parameters } = JSON.parse(fs.readFileSync(openApiFile, 'utf8'))
const messages = parseProtos(protoFolders)
const goTypes = parseGoTypes(goFolder)

/** Definitions that are one JSON scalar (or free form): a letter each. */
const letters = {
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': 't',
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': 'm',
  'io.k8s.apimachinery.pkg.api.resource.Quantity': 'q',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': 'x',
  'io.k8s.apimachinery.pkg.runtime.RawExtension': 'r',
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1': 'f',
  'io.k8s.apimachinery.pkg.apis.meta.v1.Patch': 'p',
}

const names = Object.keys(definitions).sort()
const indexOf = new Map(names.map((name, index) => [name, index]))

function typeCode(schema) {
  if (schema.$ref) {
    const name = schema.$ref.replace('#/definitions/', '')
    return letters[name] ?? `@${indexOf.get(name)}`
  }
  if (schema.type === 'array') return `[${typeCode(schema.items)}`
  if (schema.type === 'object') return schema.additionalProperties ? `{${typeCode(schema.additionalProperties)}` : 'o'
  if (schema.type === 'integer') return schema.format === 'int32' ? 'i' : 'l'
  if (schema.type === 'string') return schema.format === 'byte' ? 'y' : 's'
  if (schema.type === 'number') return 'd'
  if (schema.type === 'boolean') return 'b'
  throw new Error(`unknown shape ${JSON.stringify(schema)}`)
}

/** io.k8s.api.core.v1.Pod → k8s.io.api.core.v1.Pod, the protobuf package's spelling. */
const packaged = (definition) =>
  definition
    .replace(/^io\.k8s\./, 'k8s.io.')
    .replace('.apiextensions-apiserver.', '.apiextensions_apiserver.')
    .replace('.kube-aggregator.', '.kube_aggregator.')
const messageOf = (definition) => messages.get(packaged(definition))

/** The protobuf field behind a JSON field, looking into messages that JSON shows inline. */
function findProto(message, field, known) {
  if (!message) return undefined
  const own = message.fields.get(field) ?? [...message.fields].find(([name]) => plain(name) === plain(field))?.[1]
  if (own) return { field: own, within: [] }
  for (const [name, candidate] of message.fields) {
    if (known.has(name)) continue
    const inner = findProto(messages.get(candidate.type), field, known)
    if (inner) return { field: inner.field, within: [candidate.number, ...inner.within] }
  }
  return undefined
}

/** protobuf spells some names otherwise: Webhooks, uID, xKubernetesListType for x-kubernetes-list-type. */
const plain = (name) => name.replace(/[-$]/g, '').toLowerCase()

const unmatched = []
const unflagged = []

function fieldRow(definition, name, schema, required, message, known) {
  const extras = {}
  const found = findProto(message, name, known)
  if (message && !found && !['apiVersion', 'kind'].includes(name)) unmatched.push(`${definition}.${name}`)
  if (schema['x-kubernetes-list-type']) extras.lt = schema['x-kubernetes-list-type']
  if (schema['x-kubernetes-list-map-keys']) extras.lk = schema['x-kubernetes-list-map-keys']
  if (schema['x-kubernetes-map-type']) extras.mt = schema['x-kubernetes-map-type']
  if (schema['x-kubernetes-patch-strategy']) extras.ps = schema['x-kubernetes-patch-strategy']
  if (schema['x-kubernetes-patch-merge-key']) extras.pk = schema['x-kubernetes-patch-merge-key']
  if (found?.field.default !== undefined) extras.d = found.field.default
  if (found && found.within.length > 0) extras.in = found.within
  const row = [name, typeCode(schema), found?.field.number ?? 0]
  if (required) extras.r = 1
  const flags = findGoField(goTypes, packaged(definition), name)
  if (flags?.pointer) extras.p = 1
  // A named type of another package, types.UID for one, looks like a struct from here; the API's own type tells that it is a scalar.
  if (flags?.always && !(flags.omits && /^[silbdy[{]/.test(row[1]))) extras.a = 1
  if (!flags && !['apiVersion', 'kind'].includes(name)) unflagged.push(`${definition}.${name}`)
  if (Object.keys(extras).length > 0) row.push(extras)
  return row
}

function definitionRow(name) {
  const definition = definitions[name]
  const message = messageOf(name)
  const properties = Object.entries(definition.properties ?? {})
  const known = new Set(properties.map(([field]) => field))
  const required = new Set(definition.required ?? [])
  const extras = {}
  const gvk = definition['x-kubernetes-group-version-kind']
  if (gvk?.length === 1) extras.gvk = [gvk[0].group, gvk[0].version, gvk[0].kind]
  if (gvk?.length > 1) extras.every = gvk[0].kind
  if (definition['x-kubernetes-map-type']) extras.mt = definition['x-kubernetes-map-type']
  if (definition['x-kubernetes-unions']) extras.unions = definition['x-kubernetes-unions']
  if (definition.type === undefined) extras.any = 1
  return [name, properties.map(([field, schema]) => fieldRow(name, field, schema, required.has(field), message, known)), extras]
}

// ---- resources ------------------------------------------------------------------------------------------------------------

const shortNames = {
  componentstatuses: ['cs'],
  configmaps: ['cm'],
  endpoints: ['ep'],
  events: ['ev'],
  limitranges: ['limits'],
  namespaces: ['ns'],
  nodes: ['no'],
  persistentvolumeclaims: ['pvc'],
  persistentvolumes: ['pv'],
  pods: ['po'],
  replicationcontrollers: ['rc'],
  resourcequotas: ['quota'],
  serviceaccounts: ['sa'],
  services: ['svc'],
  daemonsets: ['ds'],
  deployments: ['deploy'],
  replicasets: ['rs'],
  statefulsets: ['sts'],
  cronjobs: ['cj'],
  horizontalpodautoscalers: ['hpa'],
  ingresses: ['ing'],
  ipaddresses: ['ip'],
  networkpolicies: ['netpol'],
  poddisruptionbudgets: ['pdb'],
  storageclasses: ['sc'],
  volumeattributesclasses: ['vac'],
  priorityclasses: ['pc'],
  certificatesigningrequests: ['csr'],
  customresourcedefinitions: ['crd', 'crds'],
}
const all = [
  'cronjobs',
  'daemonsets',
  'deployments',
  'horizontalpodautoscalers',
  'jobs',
  'pods',
  'replicasets',
  'replicationcontrollers',
  'services',
  'statefulsets',
]
const apiExtensions = [
  'apiservices',
  'customresourcedefinitions',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'validatingwebhookconfigurations',
]
/** Where upstream's storage deviates from /registry/<resource>. */
const storagePrefixes = {
  replicationcontrollers: 'controllers',
  endpoints: 'services/endpoints',
  nodes: 'minions',
  services: 'services/specs',
  ingresses: 'ingress',
  customresourcedefinitions: 'apiextensions.k8s.io/customresourcedefinitions',
  apiservices: 'apiregistration.k8s.io/apiservices',
}
/**
 * Versions of stored objects where they are older than what is served, so that the release before can read them.
 * Upstream: pkg/kubeapiserver/default_storage_factory_builder.go, pkg/controlplane/apiserver/apiextensions.go.
 */
const writtenVersions = {
  customresourcedefinitions: 'v1beta1',
  mutatingadmissionpolicies: 'v1beta1',
  mutatingadmissionpolicybindings: 'v1beta1',
}
/** Group and version priority of discovery; the default group-versions of v1.36. */
const priorities = {
  '/v1': [18000, 1],
  'apiregistration.k8s.io/v1': [20000, 15],
  'apps/v1': [17800, 15],
  'events.k8s.io/v1': [17750, 15],
  'authentication.k8s.io/v1': [17700, 15],
  'authorization.k8s.io/v1': [17600, 15],
  'autoscaling/v2': [17500, 30],
  'autoscaling/v1': [17500, 15],
  'batch/v1': [17400, 15],
  'certificates.k8s.io/v1': [17300, 15],
  'networking.k8s.io/v1': [17200, 15],
  'policy/v1': [17100, 15],
  'rbac.authorization.k8s.io/v1': [17000, 15],
  'storage.k8s.io/v1': [16800, 15],
  'admissionregistration.k8s.io/v1': [16700, 15],
  'apiextensions.k8s.io/v1': [16700, 15],
  'scheduling.k8s.io/v1': [16600, 15],
  'coordination.k8s.io/v1': [16500, 15],
  'node.k8s.io/v1': [16300, 15],
  'discovery.k8s.io/v1': [16200, 15],
  'flowcontrol.apiserver.k8s.io/v1': [16100, 21],
  'resource.k8s.io/v1': [15900, 15],
}
/** The same of group-versions that are off by default, of which this project has the kinds. */
const optionalPriorities = { 'certificates.k8s.io/v1beta1': [17300, 9], 'storagemigration.k8s.io/v1beta1': [15800, 9] }
/** Kinds that several groups or versions share are stored as one of them. */
const storedAs = { events: ['', 'v1'], horizontalpodautoscalers: ['autoscaling', 'v2'] }

const verbOfAction = { get: 'get', list: 'list', post: 'create', put: 'update', patch: 'patch', delete: 'delete', deletecollection: 'deletecollection' }
const verbOfMethod = { get: 'get', post: 'create', put: 'update', patch: 'patch', delete: 'delete' }

const groupVersions = new Map()
for (const [route, item] of Object.entries(paths)) {
  const match = /^\/(?:api|apis\/([^/]+))\/(v[^/]+)\/(?!watch\/)(namespaces\/\{namespace\}\/)?([a-z]+)(?:\/\{name\}(?:\/([a-z]+)(\/\{path\})?)?)?$/.exec(route)
  if (!match || match[6]) continue
  const [, group = '', version, namespaced, resource, subresource] = match
  const gv = `${group}/${version}`
  if (!priorities[gv] && !optionalPriorities[gv]) continue
  const resources = groupVersions.get(gv) ?? new Map()
  groupVersions.set(gv, resources)
  const entry = resources.get(resource) ?? { resource, verbs: new Set(), namespaced: false, subresources: new Map() }
  resources.set(resource, entry)
  if (namespaced) entry.namespaced = true
  let target = entry
  if (subresource) {
    target = entry.subresources.get(subresource) ?? { verbs: new Set(), parameters: [] }
    entry.subresources.set(subresource, target)
  }
  for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
    const operation = item[method]
    if (!operation) continue
    const action = operation['x-kubernetes-action']
    const gvk = operation['x-kubernetes-group-version-kind']
    if (action === 'connect') {
      target.connect = true
      target.verbs.add(verbOfMethod[method])
    } else {
      target.verbs.add(verbOfAction[action])
      if (action === 'list' && paths[route.replace(`/${version}/`, `/${version}/watch/`)]) target.verbs.add('watch')
    }
    target.kind = [gvk.group, gvk.version, gvk.kind]
    if (action === 'delete' && !operation.responses[200].schema.$ref.endsWith('.Status')) target.returnsDeleted = true
  }
  if (subresource) {
    target.parameters = (item.parameters ?? [])
      .map((parameter) => (parameter.$ref ? parameters[parameter.$ref.replace('#/parameters/', '')] : parameter))
      .filter((parameter) => parameter.in === 'query' && !['pretty', 'dryRun', 'fieldManager', 'fieldValidation'].includes(parameter.name))
      .map((parameter) => [parameter.name, parameter.type])
  }
}

function resourceRow(group, version, entry) {
  const { resource } = entry
  const [storageGroup, storageVersion] = storedAs[resource] ?? [group, version]
  const kind = entry.kind[2]
  const stored = entry.verbs.has('update')
  const row = {
    g: group,
    v: version,
    k: kind,
    r: resource,
    s: kind.toLowerCase(),
    n: entry.namespaced ? 1 : 0,
    verbs: [...entry.verbs].sort(),
    sub: [...entry.subresources]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, sub]) => ({
        n: name,
        k: sub.kind,
        verbs: [...sub.verbs].sort(),
        ...(sub.connect ? { c: 1 } : {}),
        ...(sub.parameters.length ? { p: sub.parameters } : {}),
      })),
  }
  if (shortNames[resource]) row.short = shortNames[resource]
  if (entry.returnsDeleted) row.del = 1
  const categories = [...(all.includes(resource) ? ['all'] : []), ...(apiExtensions.includes(resource) ? ['api-extensions'] : [])]
  if (categories.length) row.cat = categories
  if (stored) {
    row.prefix = storagePrefixes[resource] ?? resource
    row.sg = storageGroup
    row.sv = storageVersion
    const written = writtenVersions[resource] ?? storageVersion
    if (written !== storageVersion) row.wv = written
    row.hash = createHash('sha256').update(`${storageGroup}/${written}/${kind}`).digest().subarray(0, 8).toString('base64')
  }
  return row
}

const groups = Object.entries({ ...priorities, ...optionalPriorities })
  .map(([gv, [groupPriority, versionPriority]]) => ({
    g: gv.split('/')[0],
    v: gv.split('/')[1],
    gp: groupPriority,
    vp: versionPriority,
    ...(optionalPriorities[gv] ? { off: 1 } : {}),
  }))
  .sort((a, b) => b.gp - a.gp || (a.g < b.g ? -1 : a.g > b.g ? 1 : b.vp - a.vp))
const resources = groups.flatMap(({ g, v }) =>
  [...groupVersions.get(`${g}/${v}`).values()].sort((a, b) => (a.resource < b.resource ? -1 : 1)).map((entry) => resourceRow(g, v, entry)),
)
const deleteOptions = definitions['io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions']['x-kubernetes-group-version-kind'].map((one) => [
  one.group,
  one.version,
])

const facts = { definitions: names.map(definitionRow), groups, resources, optionGroups: deleteOptions }
const out = path.join(new URL('../src/api/gen/', import.meta.url).pathname, 'facts.ts')
fs.writeFileSync(
  out,
  `/** Generated by scripts/generateFacts.mjs from the v1.36 API. Do not edit; ./README.md says what it holds. */\nexport const factsJson = ${quote(JSON.stringify(facts))}\n`,
)
console.log(
  `${names.length} definitions, ${groups.length} group-versions, ${resources.length} resources, ${resources.reduce((n, r) => n + r.sub.length, 0)} subresources`,
)
console.log(`without a Go field: ${unflagged.length}`, unflagged.slice(0, 80))
console.log(`without a protobuf field: ${unmatched.length}`, unmatched.slice(0, 40))

function quote(text) {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
