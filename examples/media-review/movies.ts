/** A film's id is its place in the list. */
export const MOVIES: readonly string[] = [
  'The Ants',
  'A Trail in the Sand',
  'Pheromone',
  'The Long Way Home',
  'Winter Nest',
];
