/** Helm's releases (L4): from the Secrets that Helm keeps, unpacked in the page, with the rights of the user. */
import { ownValue } from '#base/bareMap'
import type { Tone } from '../../model/health.ts'
import { contentOf, type Release, type ReleaseRevision, releasesOf, releaseType } from '../../model/helm.ts'
import { listPath, objectPath, placeText } from '../../model/places.ts'
import { get } from '../api.ts'
import { Age, Empty, Facts, Failure, Loading, Status } from '../parts/basics.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { isStill } from '../session.ts'
import { namespace, place } from '../state.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' }
const metadataForm = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
const mostListed = 2_000
/** What a bundle has in place of a Secret's value. */
const masked = btoa('***')
const tones = { deployed: 'good', failed: 'bad', superseded: 'quiet' } as const

export function Helm() {
  const scope = namespace.value
  const query = new URLSearchParams({ fieldSelector: `type=${releaseType}`, labelSelector: 'owner=helm', limit: String(mostListed) })
  const { value, error, again } = useAnswer(
    async (signal) =>
      releasesOf((await get<{ items: Parameters<typeof releasesOf>[0] }>(`${listPath(secrets, scope)}?${query}`, { accept: metadataForm, signal })).items),
    `releases ${scope}`,
    10_000,
  )
  if (error !== '' && !value) return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const { release, revision } = place.value.query
  const chosen = value.find(({ namespace: ns, name }) => `${ns}/${name}` === release)
  const header = (
    <header class="bar">
      <h1>Helm releases</h1>
      <span class="quiet">{scope === '' ? 'all namespaces' : scope}</span>
    </header>
  )
  if (value.length === 0)
    return (
      <section>
        {header}
        <Empty title="Helm has installed nothing here">Releases appear when helm install has stored them as Secrets.</Empty>
      </section>
    )
  return (
    <section class="split">
      {header}
      <nav class="side" aria-label="Releases">
        <ul>
          {value.map((one) => (
            <ReleaseLink key={`${one.namespace}/${one.name}`} release={one} isCurrent={one === chosen} />
          ))}
        </ul>
      </nav>
      <div class="main">{chosen ? <ReleaseDetails release={chosen} wanted={Number(revision ?? 0)} /> : <Empty title="Choose a release" />}</div>
    </section>
  )
}

const placeOfRelease = ({ namespace: ns, name }: Pick<Release, 'namespace' | 'name'>, revision?: number) =>
  placeText(['helm'], { release: `${ns}/${name}`, ...(revision === undefined ? {} : { revision: String(revision) }) })

function ReleaseLink({ release, isCurrent }: { readonly release: Release; readonly isCurrent: boolean }) {
  const [newest] = release.revisions
  return (
    <li>
      <a href={placeOfRelease(release)} aria-current={isCurrent ? 'true' : undefined}>
        <span class="quiet">{release.namespace}/</span>
        {release.name} {newest && <StatusOf revision={newest} />}
      </a>
    </li>
  )
}

function StatusOf({ revision: { status } }: { readonly revision: ReleaseRevision }) {
  return <Status text={status} tone={ownValue<Tone>(tones, status) ?? 'busy'} />
}

function ReleaseDetails({ release, wanted }: { readonly release: Release; readonly wanted: number }) {
  const { revisions } = release
  const shown = revisions.find(({ revision }) => revision === wanted) ?? (revisions[0] as ReleaseRevision)
  return (
    <>
      <section class="panel" aria-label="Revisions">
        <h2>{release.name}</h2>
        <ul class="revisions">
          {revisions.map((one) => (
            <li key={one.revision}>
              <a href={placeOfRelease(release, one.revision)} aria-current={one === shown ? 'true' : undefined}>
                revision {one.revision}
              </a>
              <StatusOf revision={one} />
              <span class="when">
                <Age since={one.created} /> ago
              </span>
            </li>
          ))}
        </ul>
      </section>
      <Content key={shown.secret} revision={shown} />
    </>
  )
}

interface ReleaseObject {
  readonly data?: { readonly release?: string }
}

function Content({ revision: { namespace: ns, secret } }: { readonly revision: ReleaseRevision }) {
  const { value, error, again } = useAnswer(async (signal) => {
    const { data: { release = '' } = {} } = await get<ReleaseObject>(objectPath(secrets, { namespace: ns, name: secret }), { signal })
    if (isStill() && release === masked) throw new Error('The bundle was taken without the values of Secrets: skiff bundle --with-secrets keeps them.')
    return contentOf(release)
  }, `${ns}/${secret}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const { chart, appVersion, description, deployed, notes, values, manifest } = value
  const texts = [
    ['Values', JSON.stringify(values, null, 2)],
    ['Notes', notes],
    ['Manifest', manifest],
  ] as const
  return (
    <>
      <section class="panel" aria-label="Release">
        <Facts
          facts={[
            ['Chart', chart],
            ['App version', appVersion],
            ['Description', description],
            ['Deployed', <Age key="age" since={deployed} />],
          ]}
        />
      </section>
      {texts.map(
        ([title, text]) =>
          text.trim() !== '' && (
            <details key={title} class="panel" open={title !== 'Manifest'}>
              <summary>{title}</summary>
              <pre>{text}</pre>
            </details>
          ),
      )}
    </>
  )
}
