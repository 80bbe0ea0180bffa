/** InterPodAffinity, case by case. Upstream: plugins/interpodaffinity (v1.36). */
import type { Namespace, Pod, PodAffinityTerm, PodSpec } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { namespaces } from '#client/builtIn'
import type { Resource } from '#client/client'
import { type Case, node, placements, pod } from './table.ts'

const zone = 'topology.kubernetes.io/zone'
const host = 'kubernetes.io/hostname'
type Affinity = NonNullable<PodSpec['affinity']>
type Objects = NonNullable<Case['objects']>

const inZone = (name: string, value: string) => node(name, { labels: { [zone]: value } })
/** Two zones: a and b, and c. */
const nodes = [inZone('a', '1'), inZone('b', '1'), inZone('c', '2')]
const term = (app: string, topologyKey = zone, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  topologyKey,
  labelSelector: { matchLabels: { app } },
  ...more,
})
const near = (...terms: PodAffinityTerm[]): Affinity => ({ podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } })
const away = (...terms: PodAffinityTerm[]): Affinity => ({ podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } })
const weighted = (terms: [number, PodAffinityTerm][]) => terms.map(([weight, podAffinityTerm]) => ({ weight, podAffinityTerm }))
const likes = (...terms: [number, PodAffinityTerm][]): Affinity => ({ podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: weighted(terms) } })
const dislikes = (...terms: [number, PodAffinityTerm][]): Affinity => ({
  podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: weighted(terms) },
})
/** The pod to be placed, of application `me`. */
const me = (affinity?: Affinity, labels: Record<string, string> = { app: 'me' }, namespace = 'default') =>
  pod({ labels, namespace, ...(affinity ? { spec: { affinity } } : {}) })
const runs = (app: string, on: string, affinity?: Affinity, namespace = 'default'): Pod =>
  pod({ labels: { app }, on, namespace, ...(affinity ? { spec: { affinity } } : {}) })
const namespaceObjects = (...all: [string, Record<string, string>][]): Objects => [
  [
    namespaces as unknown as Resource<KubeObject>,
    all.map(([name, labels]): Namespace => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels }, spec: {}, status: {} })),
  ],
]
const all = (n: number, what: string) => `0/${n} nodes are available: ${n} ${what}.`
const one = (name: string, affinity: Affinity | undefined, placed: Pod[], fits: string, more: Partial<Case> = {}): Case => ({
  name,
  pod: me(affinity),
  nodes,
  placed,
  fits,
  ...more,
})
const expressions = (...matchExpressions: { key: string; operator: string; values?: string[] }[]) => ({ labelSelector: { matchExpressions } })
const teams = namespaceObjects(['default', { team: 'x' }], ['red', { team: 'red' }], ['blue', { team: 'blue' }])

placements('SCH-06', 'InterPodAffinity', [
  one('no terms', undefined, [runs('db', 'a')], 'a b c'),
  one('near, by zone', near(term('db')), [runs('db', 'a')], 'a b'),
  one('near, by host', near(term('db', host)), [runs('db', 'a')], 'a'),
  one('near nobody', near(term('db')), [runs('web', 'a')], '', {
    message: all(3, "node(s) didn't match pod affinity rules"),
    code: 'UnschedulableAndUnresolvable',
  }),
  one('near pods of another namespace', near(term('db')), [runs('db', 'a', undefined, 'other')], ''),
  one('near pods of a named namespace', near(term('db', zone, { namespaces: ['other'] })), [runs('db', 'a', undefined, 'other')], 'a b'),
  one('a named namespace is the only one', near(term('db', zone, { namespaces: ['other'] })), [runs('db', 'a')], ''),
  one('an operator', near(term('db', host, expressions({ key: 'app', operator: 'In', values: ['db', 'cache'] }))), [runs('cache', 'c')], 'c'),
  one('who is not of it', near(term('db', host, expressions({ key: 'app', operator: 'NotIn', values: ['db'] }))), [runs('db', 'a'), runs('web', 'b')], 'b'),
  one('whoever has the label', near(term('db', host, expressions({ key: 'app', operator: 'Exists' }))), [runs('web', 'b')], 'b'),
  one('whoever has it not', near(term('db', host, expressions({ key: 'app', operator: 'DoesNotExist' }))), [runs('web', 'b')], ''),
  one('no selector selects nobody', near({ topologyKey: zone }), [runs('db', 'a')], ''),
  one('an empty selector selects everybody', near({ topologyKey: zone, labelSelector: {} }), [runs('db', 'a')], 'a b'),
  one(
    'every expression has to hold',
    near(term('db', zone, expressions({ key: 'app', operator: 'Exists' }, { key: 'app', operator: 'In', values: ['x'] }))),
    [runs('db', 'a')],
    '',
  ),
  one('two terms', near(term('db'), term('db', host)), [runs('db', 'a')], 'a'),
  one('two terms about different pods: nobody is both', near(term('db'), term('cache')), [runs('db', 'a'), runs('cache', 'b')], ''),
  one('two terms about one pod', near(term('db'), term('db', host, expressions({ key: 'app', operator: 'Exists' }))), [runs('db', 'b')], 'b'),
  one('nodes without the label', near(term('db', 'rack')), [runs('db', 'a')], ''),
  one('the first of its kind may go anywhere', near(term('me')), [], 'a b c'),
  one('the first, where the label is', near(term('me', 'rack')), [], ''),
  one('the second goes to the first', near(term('me')), [runs('me', 'c')], 'c'),
  one('the first of another namespace is none', near(term('me')), [runs('me', 'c', undefined, 'other')], 'a b c'),
  one('the first when it wants others too', near(term('me'), term('db')), [], ''),
  one('the first when it wants itself twice', near(term('me'), term('me', host)), [], 'a b c'),
  one('away, by zone', away(term('db')), [runs('db', 'a')], 'c'),
  one('away, by host', away(term('db', host)), [runs('db', 'a')], 'b c'),
  one('away from everywhere', away(term('db')), [runs('db', 'a'), runs('db', 'c')], '', {
    message: all(3, "node(s) didn't match pod anti-affinity rules"),
    code: 'Unschedulable',
  }),
  one('away from two', away(term('db', host), term('web', host)), [runs('db', 'a'), runs('web', 'b')], 'c'),
  one('away from its own kind', away(term('me', host)), [runs('me', 'a'), runs('me', 'b')], 'c'),
  one('away: nodes without the label are fine', away(term('db', 'rack')), [runs('db', 'a')], 'a b c'),
  one('away from pods of another namespace', away(term('db')), [runs('db', 'a', undefined, 'other')], 'a b c'),
  one('near one, away from the other', { ...near(term('db')), ...away(term('web', host)) }, [runs('db', 'a'), runs('web', 'b')], 'a'),
  one('near and away from the same', { ...near(term('db')), ...away(term('db')) }, [runs('db', 'a')], ''),
  one('others keep it away', undefined, [runs('db', 'a', away(term('me')))], 'c'),
  one('others keep it away from their host', undefined, [runs('db', 'a', away(term('me', host)))], 'b c'),
  one('others keep somebody else away', undefined, [runs('db', 'a', away(term('you')))], 'a b c'),
  one('others, everywhere', undefined, [runs('db', 'a', away(term('me'))), runs('db', 'c', away(term('me')))], '', {
    message: all(3, "node(s) didn't satisfy existing pods anti-affinity rules"),
    code: 'Unschedulable',
  }),
  one('others of another namespace mean their own', undefined, [runs('db', 'a', away(term('me')), 'other')], 'a b c'),
  one('others that name this namespace', undefined, [runs('db', 'a', away(term('me', zone, { namespaces: ['default'] })), 'other')], 'c'),
  one('others: either of two terms is enough', undefined, [runs('db', 'a', away(term('me', host), term('me')))], 'c'),
  one('others: neither of two terms', undefined, [runs('db', 'a', away(term('x'), term('y')))], 'a b c'),
  one('others by a label that their node lacks', undefined, [runs('db', 'a', away(term('me', 'rack')))], 'a b c'),
  one('others keep it away from where it must be', near(term('db')), [runs('db', 'a', away(term('me', host)))], 'b'),
  one('both keep apart', away(term('db', host)), [runs('db', 'a', away(term('me')))], 'c'),
  one('what others require near does not bind it', undefined, [runs('db', 'a', near(term('me')))], 'a b c'),
  one(
    'namespaces by label',
    near(term('db', zone, { namespaceSelector: { matchLabels: { team: 'red' } } })),
    [runs('db', 'a', undefined, 'blue'), runs('db', 'c', undefined, 'red')],
    'c',
    { objects: teams },
  ),
  one('all namespaces', near(term('db', zone, { namespaceSelector: {} })), [runs('db', 'c', undefined, 'blue')], 'c', { objects: teams }),
  one(
    'namespaces by name and by label',
    near(term('db', host, { namespaces: ['blue'], namespaceSelector: { matchLabels: { team: 'red' } } })),
    [runs('db', 'a', undefined, 'blue'), runs('db', 'c', undefined, 'red'), runs('db', 'b')],
    'a c',
    {
      objects: teams,
    },
  ),
  one('no namespace has the label', near(term('db', zone, { namespaceSelector: { matchLabels: { team: 'green' } } })), [runs('db', 'a')], '', {
    objects: teams,
  }),
  one(
    'away from namespaces by label',
    away(term('db', zone, { namespaceSelector: { matchLabels: { team: 'red' } } })),
    [runs('db', 'a', undefined, 'blue'), runs('db', 'c', undefined, 'red')],
    'a b',
    { objects: teams },
  ),
  one(
    'others by the label of this namespace',
    undefined,
    [runs('db', 'a', away(term('me', zone, { namespaceSelector: { matchLabels: { team: 'x' } } })), 'red')],
    'c',
    { objects: teams },
  ),
  one(
    'others by another label',
    undefined,
    [runs('db', 'a', away(term('me', zone, { namespaceSelector: { matchLabels: { team: 'blue' } } })), 'red')],
    'a b c',
    { objects: teams },
  ),
])

const scored = (name: string, affinity: Affinity | undefined, placed: Pod[], scores: Case['scores'] & {}, more: Partial<Case> = {}): Case => ({
  name: `score: ${name}`,
  pod: me(affinity),
  nodes,
  placed,
  scores,
  ...more,
})
const hardWeight = (hardPodAffinityWeight: number, ignorePreferredTermsOfExistingPods = false) => ({
  args: { hardPodAffinityWeight, ignorePreferredTermsOfExistingPods },
})
// The lowest sum becomes 0, the highest 100.
placements('SCH-06', 'InterPodAffinity', [
  scored('nobody wants anything', undefined, [runs('db', 'a')], 'skip'),
  scored('a preference for nobody', likes([5, term('db')]), [runs('web', 'a')], 'skip'),
  scored('a preference by zone', likes([5, term('db')]), [runs('db', 'a')], { a: 100, b: 100, c: 0 }),
  scored('a preference by host', likes([5, term('db', host)]), [runs('db', 'a')], { a: 100, b: 0, c: 0 }),
  // 10, 5, 0
  scored('the more the better', likes([5, term('db', host)]), [runs('db', 'a'), runs('db', 'a'), runs('db', 'b')], { a: 100, b: 50, c: 0 }),
  // 5 + 2, 5, 3
  scored('preferences add up', likes([5, term('db')], [2, term('db', host)], [3, term('web')]), [runs('db', 'a'), runs('web', 'c')], { a: 100, b: 50, c: 0 }),
  scored('the same everywhere', likes([5, term('db')]), [runs('db', 'a'), runs('db', 'c')], { a: 0, b: 0, c: 0 }),
  scored('a dislike', dislikes([5, term('db')]), [runs('db', 'a')], { a: 0, b: 0, c: 100 }),
  scored('a dislike by host', dislikes([5, term('db', host)]), [runs('db', 'a')], { a: 0, b: 100, c: 100 }),
  // 8 - 5, 8, 0
  scored('a preference and a dislike', { ...likes([8, term('db')]), ...dislikes([5, term('web', host)]) }, [runs('db', 'a'), runs('web', 'a')], {
    a: 37,
    b: 100,
    c: 0,
  }),
  scored('another namespace', likes([5, term('db')]), [runs('db', 'a', undefined, 'other')], 'skip'),
  scored(
    'a namespace by label',
    likes([5, term('db', zone, { namespaceSelector: { matchLabels: { team: 'red' } } })]),
    [runs('db', 'c', undefined, 'red')],
    { a: 0, b: 0, c: 100 },
    { objects: teams },
  ),
  scored('others like it', undefined, [runs('db', 'a', likes([5, term('me')]))], { a: 100, b: 100, c: 0 }),
  scored('others dislike it', undefined, [runs('db', 'a', dislikes([5, term('me')]))], { a: 0, b: 0, c: 100 }),
  scored('others like somebody else', undefined, [runs('db', 'a', likes([5, term('you')]))], 'skip'),
  scored('both like each other', likes([5, term('db')]), [runs('db', 'a', likes([5, term('me', host)]))], { a: 100, b: 50, c: 0 }),
  scored('what others require counts a little', undefined, [runs('db', 'a', near(term('me')))], { a: 100, b: 100, c: 0 }),
  scored('or not at all', undefined, [runs('db', 'a', near(term('me')))], 'skip', hardWeight(0)),
  // required 10 by zone at a, preferred 5 at c
  scored(
    'or as much as the profile says',
    undefined,
    [runs('db', 'a', near(term('me'))), runs('db', 'c', likes([5, term('me')]))],
    { a: 100, b: 100, c: 0 },
    hardWeight(10),
  ),
  // 1 and 5
  scored('by default less than a preference', undefined, [runs('db', 'a', near(term('me'))), runs('db', 'c', likes([5, term('me')]))], { a: 0, b: 0, c: 100 }),
  scored('what others prefer is left out on request', undefined, [runs('db', 'a', likes([5, term('me')]))], 'skip', hardWeight(1, true)),
  scored('a node without the label', likes([5, term('db', 'rack')]), [runs('db', 'a')], 'skip'),
  {
    name: 'score: one node without the label',
    pod: me(likes([5, term('db')])),
    nodes: [...nodes, node('d')],
    placed: [runs('db', 'c')],
    scores: { a: 0, b: 0, c: 100, d: 0 },
  },
  {
    name: 'score: selectors merged from matchLabelKeys count like others',
    pod: me(likes([5, term('me', host, expressions({ key: 'app', operator: 'In', values: ['me'] }, { key: 'revision', operator: 'In', values: ['2'] }))]), {
      app: 'me',
      revision: '2',
    }),
    nodes,
    placed: [pod({ on: 'a', labels: { app: 'me', revision: '1' } }), pod({ on: 'b', labels: { app: 'me', revision: '2' } })],
    scores: { a: 0, b: 100, c: 0 },
  },
])
