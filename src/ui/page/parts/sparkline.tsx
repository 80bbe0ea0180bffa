/** A small chart of the last values (L4). */
interface SparklineProps {
  readonly values: readonly number[]
  readonly label: string
  /** How many values fit. */
  readonly most: number
}

const [width, height] = [240, 44]

export function Sparkline({ values, label, most }: SparklineProps) {
  const top = Math.max(1, ...values)
  const points = values.map((value, index) => {
    const x = width - (values.length - 1 - index) * (width / (most - 1))
    return `${x.toFixed(1)},${(height - 2 - (value / top) * (height - 6)).toFixed(1)}`
  })
  const [first = '0,0'] = points
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && <path class="area" d={`M${first.split(',')[0]},${height} L${points.join(' L')} L${width},${height} Z`} />}
      {points.length > 1 && <path class="line" d={`M${points.join(' L')}`} />}
    </svg>
  )
}
