-- oldest writer: 3
SELECT 1; -- nothing
