# What ActiveRecord sees. Prints a JSON line for each case: its name and everything seen.
require 'active_record'
require 'json'

ENVIRONMENT = { adapter: 'postgresql', host: ENV['PGHOST'], port: ENV['PGPORT'], username: ENV['PGUSER'], database: ENV['PGDATABASE'] }.freeze
ActiveRecord::Base.establish_connection(ENVIRONMENT)
ActiveRecord::Base.connection.execute('SET client_min_messages = warning')
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:authors, force: :cascade) { |t| t.string :name, null: false, limit: 80; t.integer :kind, default: 0; t.integer :lock_version, default: 0; t.timestamps precision: 6 }
  create_table(:books, force: :cascade) do |t|
    t.references :author, foreign_key: true
    t.string :title
    t.decimal :price, precision: 10, scale: 2
    t.boolean :sold, default: false
    t.jsonb :data, default: {}
    t.string :tags, array: true, default: []
    t.date :published
    t.uuid :code
    t.timestamps precision: 6
  end
  add_index :books, :title, unique: true
end

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  enum kind: { person: 0, company: 1 }
  validates :name, uniqueness: true
end

class Book < ActiveRecord::Base
  belongs_to :author
  scope :cheap, -> { where('price < ?', 30) }
end

TIME = Time.utc(2026, 1, 2, 3, 4, 5)
authors = (1..10).map { |i| { name: "author #{i}", kind: i % 2, created_at: TIME, updated_at: TIME } }
Author.insert_all!(authors)
books = (1..200).map do |i|
  { author_id: i % 10 + 1, title: "title #{i}", price: i * 1.25, sold: i.even?, data: { i: i }, tags: ['a', i.to_s],
    published: Date.new(2020, 1, 1) + i, code: format('00000000-0000-0000-0000-%012d', i), created_at: TIME, updated_at: TIME + i }
end
Book.insert_all!(books)

def attempt
  yield
rescue ActiveRecord::ActiveRecordError => e
  [e.class.name, e.message]
end

READS = {
  find: -> { Book.find(7).attributes },
  find_by: -> { Book.find_by(title: 'title 9')&.attributes },
  absent: -> { attempt { Book.find(100_000) } },
  where: -> { Book.where(author_id: 3, sold: true).order(:id).map(&:attributes) },
  list: -> { Book.where(id: [5, 3, 9]).order(:id).pluck(:id, :title, :price, :data, :tags, :published) },
  range: -> { Book.where(price: 10..20).order(id: :desc).limit(3).offset(1).pluck(:id) },
  like: -> { Book.where('title LIKE ?', 'title 1%').order(:title).pluck(:title) },
  scope: -> { Book.cheap.count },
  group: -> { Book.group(:author_id).order(:author_id).sum(:price) },
  having: -> { Book.group(:sold).having('count(*) > 10').average(:price) },
  joins: -> { Author.joins(:books).where(books: { sold: true }).distinct.order(:name).pluck(:name) },
  left_joins: -> { Author.left_joins(:books).group(:id).order(:id).count('books.id') },
  includes: -> { Author.includes(:books).order(:id).map { |a| [a.name, a.kind, a.books.map(&:title).sort] } },
  eager_load: -> { Author.eager_load(:books).where(books: { sold: false }).order('books.id').limit(3).map { |a| [a.id, a.books.size] } },
  exists: -> { [Book.exists?(title: 'title 1'), Book.exists?(title: 'none'), Author.person.any?, Book.none?] },
  json: -> { Book.where("data ->> 'i' = ?", '12').pluck(:id) },
  array: -> { Book.where('? = ANY (tags)', '17').pluck(:id) },
  extremes: -> { [Book.maximum(:price), Book.minimum(:published), Book.average(:price), Book.sum(:id)] },
  batches: -> { ids = []; Book.find_each(batch_size: 70) { |b| ids << b.id }; ids },
  first_last: -> { [Book.first.id, Book.last.id, Book.order(:price).second.id] },
  union: -> { Book.from('(SELECT * FROM books WHERE id < 3 UNION SELECT * FROM books WHERE id > 198) books').order(:id).pluck(:id) },
  merge: -> { Book.joins(:author).merge(Author.company).count },
  ids_in: -> { Author.where(id: Book.where(sold: true).select(:author_id)).order(:id).ids },
  sql: -> { Book.find_by_sql(['SELECT id, title FROM books WHERE price > ? ORDER BY id LIMIT 2', 200]).map(&:attributes) },
  columns: -> { Book.connection.columns('books').map { |c| [c.name, c.sql_type, c.default, c.null] } },
}.freeze

CASES = {
  'reads' => -> { READS.flat_map { |name, read| 3.times.map { [name, read.call] } } },
  'reads in a block' => -> { Book.transaction { READS.map { |name, read| [name, read.call] } } },
  'reads without prepared statements' => lambda {
    Book.connection.unprepared_statement { READS.map { |name, read| [name, 2.times.map { read.call }] } }
  },
  'few statements kept' => lambda {
    ActiveRecord::Base.establish_connection(ENVIRONMENT.merge(statement_limit: 5))
    seen = 3.times.map { READS.map { |name, read| [name, read.call] } }
    ActiveRecord::Base.establish_connection(ENVIRONMENT)
    seen
  },
  'writes' => lambda {
    seen = []
    author = Author.create!(name: 'new', kind: :company)
    book = author.books.create!(title: 'new title', price: 3, data: { a: [1, nil] }, tags: %w[x y])
    seen << [Author.find_by(name: 'new').books.pluck(:title, :data, :tags), Author.count]
    book.update!(price: 4)
    seen << Book.where(title: 'new title').pluck(:price)
    seen << attempt { Author.create!(name: 'new') } << attempt { Book.create!(author: author, title: 'new title') }
    stale = Author.find(author.id)
    author.update!(name: 'newer')
    seen << attempt { stale.update!(name: 'newest') } << Author.where(kind: :company).order(:id).pluck(:name)
    author.with_lock { author.update!(name: 'locked') }
    seen << Author.find(author.id).name
    Book.transaction do
      book.update!(title: 'other')
      seen << Book.exists?(title: 'other')
      Book.transaction(requires_new: true) { Book.where(id: book.id).update_all(title: 'third'); raise ActiveRecord::Rollback }
      seen << Book.find(book.id).title
      raise ActiveRecord::Rollback
    end
    seen << Book.find(book.id).title
    Author.upsert_all([{ id: author.id, name: 'upserted', created_at: TIME, updated_at: TIME }])
    seen << Author.find(author.id).name
    author.reload.destroy
    seen << [Author.count, Book.where(author_id: author.id).count, Book.increment_counter(:author_id, 0)]
  },
  'errors' => lambda {
    [attempt { Book.where('nothing = 1').to_a }, attempt { Book.find_by_sql('SELECT 1/0') }, attempt { Book.where(id: 'x').to_a }, Book.count]
  },
}.freeze

CASES.each { |name, work| puts JSON.generate([name, work.call]) }
