import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkRewriter, rewriteLink } from './links.ts'

const base = { prefix: '/api/v1/nodes/n/proxy', backendHost: '10.0.0.1:80', requestHost: 'api:6443' }

const links = [
  { name: 'a path of the backend', link: '/a', want: '/api/v1/nodes/n/proxy/a' },
  { name: 'a directory keeps its slash', link: '/a/b/', want: '/api/v1/nodes/n/proxy/a/b/' },
  { name: 'query and fragment stay', link: '/a?b=/c#/d', want: '/api/v1/nodes/n/proxy/a?b=/c#/d' },
  { name: 'the backend by its address', link: 'http://10.0.0.1:80/a', want: '/api/v1/nodes/n/proxy/a' },
  { name: 'this server by its name', link: 'https://api:6443/a', want: 'https://api:6443/api/v1/nodes/n/proxy/a' },
  { name: 'already led through the proxy', link: '/api/v1/nodes/n/proxy/a', want: '/api/v1/nodes/n/proxy/a' },
  { name: 'a relative link', link: 'a/b', want: 'a/b' },
  { name: 'another host', link: '//elsewhere/a', want: '//elsewhere/a' },
  { name: 'no path at all', link: 'mailto:a@b', want: 'mailto:a@b' },
  { name: 'a fragment', link: '#top', want: '#top' },
]
for (const one of links) test(`link: ${one.name}`, () => assert.equal(rewriteLink(one.link, base), one.want))

async function through(chunks: readonly Buffer[]): Promise<Buffer> {
  const rewriter = linkRewriter(base)
  for (const chunk of chunks) rewriter.write(chunk)
  rewriter.end()
  const out: Buffer[] = []
  for await (const chunk of rewriter) out.push(chunk as Buffer)
  return Buffer.concat(out)
}

const pages = [
  { name: 'quotes of either kind, and none', page: `<a href='/a'><a href="/a"><a href=/a>`, want: `<a href='P/a'><a href="P/a"><a href=P/a>` },
  { name: 'upper case and spaces', page: '<A\n HREF = "/a">', want: '<A\n HREF = "P/a">' },
  { name: 'only attributes that hold links', page: '<a title="/a" href="/b">', want: '<a title="/a" href="P/b">' },
  { name: 'text and comments are left', page: 'a < b <!-- <a href="/a"> > --> /a', want: 'a < b <!-- <a href="/a"> > --> /a' },
  {
    name: 'scripts are left, their source is not',
    page: '<script src="/s">"<a href=/a>"</script><a href=/a>',
    want: '<script src="P/s">"<a href=/a>"</script><a href=P/a>',
  },
  { name: 'a > in a value', page: '<a title="x>y" href="/a">', want: '<a title="x>y" href="P/a">' },
  { name: 'an unfinished tag', page: '<p>x</p><a href="/a', want: '<p>x</p><a href="/a' },
]
for (const { name, page, want } of pages) {
  test(`page: ${name}, however it is cut into chunks`, async () => {
    const wanted = want.replaceAll('P/', `${base.prefix}/`)
    for (const size of [1, 3, page.length]) {
      const chunks = Array.from({ length: Math.ceil(page.length / size) }, (_, i) => Buffer.from(page.slice(i * size, (i + 1) * size)))
      assert.equal((await through(chunks)).toString(), wanted, `chunks of ${size}`)
    }
  })
}

test('page: bytes of any encoding pass unchanged', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  assert.deepEqual(await through([bytes, Buffer.from('<a href="/ä">')]), Buffer.concat([bytes, Buffer.from(`<a href="${base.prefix}/ä">`)]))
})

test('page: an endless tag does not gather in memory', async () => {
  const long = Buffer.from(`<a ${'x'.repeat(200_000)}`)
  assert.deepEqual(await through([long, long]), Buffer.concat([long, long]))
})

test('page: long tags without a value take time in proportion to their length', async () => {
  const tags = Buffer.from(`<a ${'x'.repeat(15_000)}>`.repeat(30))
  const startedMs = performance.now()
  assert.equal((await through([tags])).length, tags.length)
  assert.ok(performance.now() - startedMs < 1_000, 'it took a second')
})

test('page: a tag that arrives byte by byte is not read again for each byte', async () => {
  const bytes = Array.from(Buffer.from(`<a title="${'x'.repeat(15_000)}" href="/a">`), (byte) => Buffer.from([byte]))
  const startedMs = performance.now()
  assert.ok((await through(bytes)).toString().endsWith(`href="${base.prefix}/a">`))
  assert.ok(performance.now() - startedMs < 1_000, 'it took a second')
})
